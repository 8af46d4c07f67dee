-- call
SET NOCOUNT ON; SET XACT_ABORT ON; SET LOCK_TIMEOUT 5000; IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION; SET TRANSACTION ISOLATION LEVEL READ COMMITTED; BEGIN TRANSACTION;
-- call
SET NOCOUNT ON; SET XACT_ABORT ON; SET LOCK_TIMEOUT 5000;
DECLARE @now bigint = DATEDIFF_BIG(MICROSECOND, '19700101', SYSUTCDATETIME()), @lock int, @patience int = 5000, @incarnation nvarchar(64), @since bigint, @fork nvarchar(40), @origin nvarchar(400);
SET @fork = (SELECT CONVERT(nvarchar(40), recovery_fork_guid) FROM sys.database_recovery_status WHERE database_id = DB_ID());
SET @origin = CONCAT(CONVERT(nvarchar(256), @@SERVERNAME), N' ', (SELECT CONVERT(nvarchar(40), create_date, 126) FROM sys.databases WHERE name = 'tempdb'), N' ', (SELECT CONVERT(nvarchar(40), create_date, 126) FROM sys.databases WHERE database_id = DB_ID()), N' ', OBJECT_ID(N'[rebalancer].record'), N' ', (SELECT CONVERT(bigint, stamp) FROM [rebalancer].record WHERE one = 2));
SELECT @incarnation = r.incarnation, @since = r.since FROM [rebalancer].record r WHERE r.one = 1 AND r.format = 1 AND r.origin = @origin AND (r.fork IS NULL OR @fork IS NULL OR r.fork = @fork);
SELECT @now, @incarnation, @since;
IF @incarnation IS NOT NULL BEGIN
EXEC @lock = sp_getapplock @Resource = @p1, @LockMode = 'Exclusive', @LockOwner = 'Transaction', @LockTimeout = @patience; IF @lock < 0 THROW 51222, 'rebalancer: a lock was not granted', 1;
EXEC @lock = sp_getapplock @Resource = @p2, @LockMode = 'Exclusive', @LockOwner = 'Transaction', @LockTimeout = @patience; IF @lock < 0 THROW 51222, 'rebalancer: a lock was not granted', 1;
UPDATE [rebalancer].sessions SET expires = -1 WHERE id IN (SELECT session FROM [rebalancer].entries WHERE grp = @p3 AND name IN (@p4,@p5) AND session <> @p6) AND expires <= @now AND expires >= 0;
UPDATE [rebalancer].sessions SET touched = touched + 1 WHERE id = @p7 AND expires > @now;
SELECT CASE WHEN expires > @now THEN 1 ELSE 0 END, superseded FROM [rebalancer].sessions WHERE id = @p8;
SELECT e.name, e.version, e.session, e.gone, CASE WHEN e.session = @p9 OR s.expires > @now THEN 1 ELSE 0 END FROM (SELECT * FROM [rebalancer].entries WHERE grp = @p10 AND name IN (@p11,@p12)) e LEFT JOIN [rebalancer].sessions s ON s.id = e.session;
SELECT DATEDIFF_BIG(MICROSECOND, '19700101', SYSUTCDATETIME());
SELECT CONVERT(bigint, 1);
END
-- @p1 = N'rebalancer d8b2a4acddc405ef 285'
-- @p2 = N'rebalancer d8b2a4acddc405ef 3d8'
-- @p3 = "group"
-- @p4 = "leader"
-- @p5 = "new"
-- @p6 = ""
-- @p7 = "SESSION"
-- @p8 = "SESSION"
-- @p9 = ""
-- @p10 = "group"
-- @p11 = "leader"
-- @p12 = "new"
-- call
SET NOCOUNT ON; SET XACT_ABORT ON; SET LOCK_TIMEOUT 5000;
DECLARE @now bigint = @p1, @lock int, @patience int = 5000;
INSERT INTO [rebalancer].entries (value, version, session, gone, grp, name) VALUES (@p2, @p3, @p4, @p5, @p6, @p7);
UPDATE [rebalancer].entries SET value = @p8, version = @p9, session = @p10, gone = @p11 WHERE grp = @p12 AND name = @p13 AND version = @p14;
SELECT CONVERT(bigint, @@ROWCOUNT);
SELECT CONVERT(bigint, 1);
-- @p1 = 1000000000000000
-- @p2 = "v"
-- @p3 = 1
-- @p4 = "SESSION"
-- @p5 = 0
-- @p6 = "group"
-- @p7 = "new"
-- @p8 = "w"
-- @p9 = 8
-- @p10 = ""
-- @p11 = 0
-- @p12 = "group"
-- @p13 = "leader"
-- @p14 = 7
-- call
COMMIT TRANSACTION;
