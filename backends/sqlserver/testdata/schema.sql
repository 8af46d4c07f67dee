IF SCHEMA_ID(N'my [odd] ''name''') IS NULL EXEC(N'CREATE SCHEMA [my [odd]] ''name'']');
IF OBJECT_ID(N'[my [odd]] ''name''].record') IS NULL
CREATE TABLE [my [odd]] 'name'].record (
	one tinyint NOT NULL PRIMARY KEY CHECK (one IN (1, 2)), format bigint NOT NULL, incarnation nvarchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
	since bigint NOT NULL, origin nvarchar(400) COLLATE Latin1_General_BIN2 NOT NULL, fork nvarchar(40) COLLATE Latin1_General_BIN2 NULL,
	stamp rowversion NOT NULL);
IF OBJECT_ID(N'[my [odd]] ''name''].sessions') IS NULL
BEGIN
	CREATE TABLE [my [odd]] 'name'].sessions (
		id varbinary(128) NOT NULL PRIMARY KEY, grp varbinary(2048) NOT NULL, node varbinary(8000) NOT NULL, expires bigint NOT NULL, ttl bigint NOT NULL,
		touched bigint NOT NULL, opened bigint NOT NULL, superseded tinyint NOT NULL, proof varbinary(8000) NOT NULL);
	CREATE INDEX sessions_by_group ON [my [odd]] 'name'].sessions (grp);
END;
IF OBJECT_ID(N'[my [odd]] ''name''].entries') IS NULL
BEGIN
	CREATE TABLE [my [odd]] 'name'].entries (
		number bigint IDENTITY NOT NULL PRIMARY KEY, grp varbinary(2048) NOT NULL, name varbinary(2048) NOT NULL, value varbinary(max) NOT NULL,
		version bigint NOT NULL, session varbinary(128) NOT NULL, gone tinyint NOT NULL);
	CREATE UNIQUE INDEX entries_by_name ON [my [odd]] 'name'].entries (grp, name);
	CREATE INDEX entries_by_session ON [my [odd]] 'name'].entries (session);
END;

GRANT SELECT, INSERT, UPDATE, DELETE ON OBJECT::[my [odd]] 'name'].record TO [app]]user];
GRANT SELECT, INSERT, UPDATE, DELETE ON OBJECT::[my [odd]] 'name'].sessions TO [app]]user];
GRANT SELECT, INSERT, UPDATE, DELETE ON OBJECT::[my [odd]] 'name'].entries TO [app]]user];
