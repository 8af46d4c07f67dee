-- call
SET NOCOUNT ON; SET XACT_ABORT ON; SET LOCK_TIMEOUT 5000;
DECLARE @now bigint = DATEDIFF_BIG(MICROSECOND, '19700101', SYSUTCDATETIME()), @lock int, @patience int = 5000, @incarnation nvarchar(64), @since bigint, @fork nvarchar(40), @origin nvarchar(400);
SET @fork = (SELECT CONVERT(nvarchar(40), recovery_fork_guid) FROM sys.database_recovery_status WHERE database_id = DB_ID());
SET @origin = CONCAT(CONVERT(nvarchar(256), @@SERVERNAME), N' ', (SELECT CONVERT(nvarchar(40), create_date, 126) FROM sys.databases WHERE name = 'tempdb'), N' ', (SELECT CONVERT(nvarchar(40), create_date, 126) FROM sys.databases WHERE database_id = DB_ID()), N' ', OBJECT_ID(N'[rebalancer].record'), N' ', (SELECT CONVERT(bigint, stamp) FROM [rebalancer].record WHERE one = 2));
SELECT @incarnation = r.incarnation, @since = r.since FROM [rebalancer].record r WHERE r.one = 1 AND r.format = 1 AND r.origin = @origin AND (r.fork IS NULL OR @fork IS NULL OR r.fork = @fork);
SELECT @now, @incarnation, @since;
IF @incarnation IS NOT NULL BEGIN
BEGIN TRANSACTION;
UPDATE [rebalancer].sessions SET expires = @now + @p1 WHERE id = @p2 AND expires > @now AND superseded = 0 AND (SELECT incarnation FROM [rebalancer].record WHERE one = 1) = @p3;
SELECT CONVERT(bigint, @@ROWCOUNT);
COMMIT TRANSACTION;
SELECT e.name, e.version, e.session, s.expires, NULL FROM (SELECT * FROM [rebalancer].entries WHERE grp = @p4 AND name IN (@p5,@p6,@p7,@p8)) e LEFT JOIN [rebalancer].sessions s ON s.id = e.session WHERE e.gone = 0 AND (e.session = @p9 OR s.expires > @now);
SELECT e.name, e.version, e.session, s.expires, NULL FROM [rebalancer].entries e LEFT JOIN [rebalancer].sessions s ON s.id = e.session WHERE e.gone = 0 AND (e.session = @p10 OR s.expires > @now) AND e.grp = @p11 AND e.name >= @p12 AND e.name < @p13 ORDER BY e.name;
SELECT CONVERT(bigint, 1);
END
-- @p1 = 30000000
-- @p2 = "SESSION"
-- @p3 = N'inc'
-- @p4 = "group"
-- @p5 = "a"
-- @p6 = "b"
-- @p7 = "c"
-- @p8 = "c"
-- @p9 = ""
-- @p10 = ""
-- @p11 = "group"
-- @p12 = "p/"
-- @p13 = "p0"
-- call
SET NOCOUNT ON; SET XACT_ABORT ON; SET LOCK_TIMEOUT 5000;
DECLARE @now bigint = DATEDIFF_BIG(MICROSECOND, '19700101', SYSUTCDATETIME()), @lock int, @patience int = 5000, @incarnation nvarchar(64), @since bigint, @fork nvarchar(40), @origin nvarchar(400);
SET @fork = (SELECT CONVERT(nvarchar(40), recovery_fork_guid) FROM sys.database_recovery_status WHERE database_id = DB_ID());
SET @origin = CONCAT(CONVERT(nvarchar(256), @@SERVERNAME), N' ', (SELECT CONVERT(nvarchar(40), create_date, 126) FROM sys.databases WHERE name = 'tempdb'), N' ', (SELECT CONVERT(nvarchar(40), create_date, 126) FROM sys.databases WHERE database_id = DB_ID()), N' ', OBJECT_ID(N'[rebalancer].record'), N' ', (SELECT CONVERT(bigint, stamp) FROM [rebalancer].record WHERE one = 2));
SELECT @incarnation = r.incarnation, @since = r.since FROM [rebalancer].record r WHERE r.one = 1 AND r.format = 1 AND r.origin = @origin AND (r.fork IS NULL OR @fork IS NULL OR r.fork = @fork);
SELECT @now, @incarnation, @since;
IF @incarnation IS NOT NULL BEGIN
BEGIN TRANSACTION;
UPDATE [rebalancer].sessions SET expires = -1 WHERE grp = @p1 AND expires <= @now AND expires >= 0;
UPDATE [rebalancer].entries SET gone = 1, value = @p2, session = @p3 WHERE grp = @p4 AND session IN (SELECT id FROM [rebalancer].sessions WHERE grp = @p5 AND expires = -1) AND grp = @p6;
DELETE FROM [rebalancer].sessions WHERE grp = @p7 AND expires = -1 AND NOT EXISTS (SELECT 1 FROM [rebalancer].entries e WHERE e.session = [rebalancer].sessions.id);
DELETE FROM [rebalancer].entries WHERE grp = @p8 AND gone = 1 AND version < DATEDIFF_BIG(MICROSECOND, '19700101', SYSUTCDATETIME()) - @p9 AND grp = @p10;
COMMIT TRANSACTION;
SELECT CONVERT(bigint, 1);
END
-- @p1 = "group"
-- @p2 = ""
-- @p3 = ""
-- @p4 = "group"
-- @p5 = "group"
-- @p6 = "group"
-- @p7 = "group"
-- @p8 = "group"
-- @p9 = 86400000000
-- @p10 = "group"
