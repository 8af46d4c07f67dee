-- call
SET NOCOUNT ON; SET XACT_ABORT ON; SET LOCK_TIMEOUT 5000; IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION; SET TRANSACTION ISOLATION LEVEL READ COMMITTED; BEGIN TRANSACTION;
-- call
SET NOCOUNT ON; SET XACT_ABORT ON; SET LOCK_TIMEOUT 5000;
DECLARE @lock int, @patience int = 5000;
EXEC @lock = sp_getapplock @Resource = @p1, @LockMode = 'Exclusive', @LockOwner = 'Transaction', @LockTimeout = @patience; IF @lock < 0 THROW 51222, 'rebalancer: a lock was not granted', 1;
SELECT CASE WHEN SCHEMA_ID(@p2) IS NULL THEN 0 ELSE 1 END + (SELECT COUNT(*) FROM sys.tables WHERE schema_id = SCHEMA_ID(@p3) AND name IN ('record', 'sessions', 'entries'));
-- @p1 = N'rebalancer 31ce2c96c4d0f86f'
-- @p2 = N'rebalancer'
-- @p3 = N'rebalancer'
-- call
IF OBJECT_ID(N'[rebalancer].record') IS NULL
CREATE TABLE [rebalancer].record (
	one tinyint NOT NULL PRIMARY KEY CHECK (one IN (1, 2)), format bigint NOT NULL, incarnation nvarchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
	since bigint NOT NULL, origin nvarchar(400) COLLATE Latin1_General_BIN2 NOT NULL, fork nvarchar(40) COLLATE Latin1_General_BIN2 NULL,
	stamp rowversion NOT NULL);
IF OBJECT_ID(N'[rebalancer].sessions') IS NULL
BEGIN
	CREATE TABLE [rebalancer].sessions (
		id varbinary(128) NOT NULL PRIMARY KEY, grp varbinary(2048) NOT NULL, node varbinary(8000) NOT NULL, expires bigint NOT NULL, ttl bigint NOT NULL,
		touched bigint NOT NULL, opened bigint NOT NULL, superseded tinyint NOT NULL, proof varbinary(8000) NOT NULL);
	CREATE INDEX sessions_by_group ON [rebalancer].sessions (grp);
END;
IF OBJECT_ID(N'[rebalancer].entries') IS NULL
BEGIN
	CREATE TABLE [rebalancer].entries (
		number bigint IDENTITY NOT NULL PRIMARY KEY, grp varbinary(2048) NOT NULL, name varbinary(2048) NOT NULL, value varbinary(max) NOT NULL,
		version bigint NOT NULL, session varbinary(128) NOT NULL, gone tinyint NOT NULL);
	CREATE UNIQUE INDEX entries_by_name ON [rebalancer].entries (grp, name);
	CREATE INDEX entries_by_session ON [rebalancer].entries (session);
END;
-- call
COMMIT TRANSACTION;
