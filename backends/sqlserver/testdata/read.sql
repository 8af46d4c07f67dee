-- call
SET NOCOUNT ON; SET XACT_ABORT ON; SET LOCK_TIMEOUT 5000;
DECLARE @now bigint = DATEDIFF_BIG(MICROSECOND, '19700101', SYSUTCDATETIME()), @lock int, @patience int = 5000, @incarnation nvarchar(64), @since bigint, @fork nvarchar(40), @origin nvarchar(400);
SET @fork = (SELECT CONVERT(nvarchar(40), recovery_fork_guid) FROM sys.database_recovery_status WHERE database_id = DB_ID());
SET @origin = CONCAT(CONVERT(nvarchar(256), @@SERVERNAME), N' ', (SELECT CONVERT(nvarchar(40), create_date, 126) FROM sys.databases WHERE name = 'tempdb'), N' ', (SELECT CONVERT(nvarchar(40), create_date, 126) FROM sys.databases WHERE database_id = DB_ID()), N' ', OBJECT_ID(N'[rebalancer].record'), N' ', (SELECT CONVERT(bigint, stamp) FROM [rebalancer].record WHERE one = 2));
SELECT @incarnation = r.incarnation, @since = r.since FROM [rebalancer].record r WHERE r.one = 1 AND r.format = 1 AND r.origin = @origin AND (r.fork IS NULL OR @fork IS NULL OR r.fork = @fork);
SELECT @now, @incarnation, @since;
IF @incarnation IS NOT NULL BEGIN
SELECT e.name, e.version, e.session, s.expires, e.value FROM [rebalancer].entries e LEFT JOIN [rebalancer].sessions s ON s.id = e.session WHERE e.gone = 0 AND (e.session = @p1 OR s.expires > @now) AND e.grp = @p2 AND e.name >= @p3 AND e.name < @p4 ORDER BY e.name;
SELECT e.name, e.version, e.session, s.expires, e.value FROM [rebalancer].entries e LEFT JOIN [rebalancer].sessions s ON s.id = e.session WHERE e.gone = 0 AND (e.session = @p5 OR s.expires > @now) AND e.grp = @p6 AND e.name >= @p7 ORDER BY e.name;
SELECT e.name, e.version, e.session, s.expires, e.value FROM (SELECT * FROM [rebalancer].entries WHERE grp = @p8 AND name IN (@p9)) e LEFT JOIN [rebalancer].sessions s ON s.id = e.session WHERE e.gone = 0 AND (e.session = @p10 OR s.expires > @now);
SELECT CONVERT(bigint, 1);
END
-- @p1 = ""
-- @p2 = "group"
-- @p3 = "p/"
-- @p4 = "p0"
-- @p5 = ""
-- @p6 = "group"
-- @p7 = "\xff"
-- @p8 = "group"
-- @p9 = "a"
-- @p10 = ""
