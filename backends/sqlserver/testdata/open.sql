-- call
SELECT CONVERT(bigint, delayed_durability) FROM sys.databases WHERE database_id = DB_ID()
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
INSERT INTO [rebalancer].sessions (id, grp, node, expires, ttl, touched, superseded, proof, opened) SELECT @p2, @p3, @p4, @now + @p5, @p6, 0, 0, @p7, CASE WHEN l.last >= @now THEN l.last + 1 ELSE @now END FROM (SELECT coalesce(max(opened), 0) AS last FROM [rebalancer].sessions WHERE grp = @p8) l;
SELECT opened FROM [rebalancer].sessions WHERE id = @p9;
SELECT CONVERT(bigint, 1);
END
-- @p1 = N'rebalancer 20755ac58a47e223'
-- @p2 = "SESSION"
-- @p3 = "group"
-- @p4 = "node"
-- @p5 = 30000000
-- @p6 = 30000000
-- @p7 = ""
-- @p8 = "group"
-- @p9 = "SESSION"
-- call
COMMIT TRANSACTION;
