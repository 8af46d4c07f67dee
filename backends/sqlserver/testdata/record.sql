-- call
SELECT CONVERT(bigint, delayed_durability) FROM sys.databases WHERE database_id = DB_ID()
-- call
SET NOCOUNT ON; SET XACT_ABORT ON; SET LOCK_TIMEOUT 5000;
DECLARE @now bigint = DATEDIFF_BIG(MICROSECOND, '19700101', SYSUTCDATETIME()), @lock int, @patience int = 5000, @incarnation nvarchar(64), @since bigint, @fork nvarchar(40), @origin nvarchar(400);
SET @fork = (SELECT CONVERT(nvarchar(40), recovery_fork_guid) FROM sys.database_recovery_status WHERE database_id = DB_ID());
SET @origin = CONCAT(CONVERT(nvarchar(256), @@SERVERNAME), N' ', (SELECT CONVERT(nvarchar(40), create_date, 126) FROM sys.databases WHERE name = 'tempdb'), N' ', (SELECT CONVERT(nvarchar(40), create_date, 126) FROM sys.databases WHERE database_id = DB_ID()), N' ', OBJECT_ID(N'[rebalancer].record'), N' ', (SELECT CONVERT(bigint, stamp) FROM [rebalancer].record WHERE one = 2));
SELECT @incarnation = r.incarnation, @since = r.since FROM [rebalancer].record r WHERE r.one = 1 AND r.format = 1 AND r.origin = @origin AND (r.fork IS NULL OR @fork IS NULL OR r.fork = @fork);
SELECT @now, @incarnation, @since;
IF @incarnation IS NOT NULL BEGIN
SELECT DISTINCT grp FROM [rebalancer].entries WHERE gone = 0 AND session = @p1 ORDER BY grp;
SELECT CONVERT(bigint, 1);
END
-- @p1 = ""
-- call
SET NOCOUNT ON; SET XACT_ABORT ON; SET LOCK_TIMEOUT 5000; IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION; SET TRANSACTION ISOLATION LEVEL READ COMMITTED; BEGIN TRANSACTION;
-- call
SET NOCOUNT ON; SET XACT_ABORT ON; SET LOCK_TIMEOUT 5000;
DECLARE @now bigint = DATEDIFF_BIG(MICROSECOND, '19700101', SYSUTCDATETIME()), @lock int, @patience int = 5000, @fork nvarchar(40), @origin nvarchar(400);
EXEC @lock = sp_getapplock @Resource = @p1, @LockMode = 'Exclusive', @LockOwner = 'Transaction', @LockTimeout = @patience; IF @lock < 0 THROW 51222, 'rebalancer: a lock was not granted', 1;
INSERT INTO [rebalancer].record (one, format, incarnation, since, origin, fork) SELECT 2, 0, N'', 0, N'', NULL WHERE NOT EXISTS (SELECT 1 FROM [rebalancer].record WHERE one = 2);
SET @fork = (SELECT CONVERT(nvarchar(40), recovery_fork_guid) FROM sys.database_recovery_status WHERE database_id = DB_ID());
SET @origin = CONCAT(CONVERT(nvarchar(256), @@SERVERNAME), N' ', (SELECT CONVERT(nvarchar(40), create_date, 126) FROM sys.databases WHERE name = 'tempdb'), N' ', (SELECT CONVERT(nvarchar(40), create_date, 126) FROM sys.databases WHERE database_id = DB_ID()), N' ', OBJECT_ID(N'[rebalancer].record'), N' ', (SELECT CONVERT(bigint, stamp) FROM [rebalancer].record WHERE one = 2));
UPDATE [rebalancer].record SET incarnation = @p2, since = @now, fork = @fork, origin = @origin WHERE one = 1 AND format = @p3 AND NOT (origin = @origin AND (fork IS NULL OR @fork IS NULL OR fork = @fork));
INSERT INTO [rebalancer].record (one, format, incarnation, since, origin, fork) SELECT 1, @p4, @p5, @now, @origin, @fork WHERE NOT EXISTS (SELECT 1 FROM [rebalancer].record WHERE one = 1);
SELECT format FROM [rebalancer].record WHERE one = 1;
-- @p1 = N'rebalancer eeabcc69bed90f93'
-- @p2 = N'RANDOM'
-- @p3 = 1
-- @p4 = 1
-- @p5 = N'RANDOM'
-- call
COMMIT TRANSACTION;
-- call
SET NOCOUNT ON; SET XACT_ABORT ON; SET LOCK_TIMEOUT 5000;
DECLARE @now bigint = DATEDIFF_BIG(MICROSECOND, '19700101', SYSUTCDATETIME()), @lock int, @patience int = 5000, @incarnation nvarchar(64), @since bigint, @fork nvarchar(40), @origin nvarchar(400);
SET @fork = (SELECT CONVERT(nvarchar(40), recovery_fork_guid) FROM sys.database_recovery_status WHERE database_id = DB_ID());
SET @origin = CONCAT(CONVERT(nvarchar(256), @@SERVERNAME), N' ', (SELECT CONVERT(nvarchar(40), create_date, 126) FROM sys.databases WHERE name = 'tempdb'), N' ', (SELECT CONVERT(nvarchar(40), create_date, 126) FROM sys.databases WHERE database_id = DB_ID()), N' ', OBJECT_ID(N'[rebalancer].record'), N' ', (SELECT CONVERT(bigint, stamp) FROM [rebalancer].record WHERE one = 2));
SELECT @incarnation = r.incarnation, @since = r.since FROM [rebalancer].record r WHERE r.one = 1 AND r.format = 1 AND r.origin = @origin AND (r.fork IS NULL OR @fork IS NULL OR r.fork = @fork);
SELECT @now, @incarnation, @since;
IF @incarnation IS NOT NULL BEGIN
SELECT DISTINCT grp FROM [rebalancer].entries WHERE gone = 0 AND session = @p1 ORDER BY grp;
SELECT CONVERT(bigint, 1);
END
-- @p1 = ""
