/** What SQLite reports when the disk is full or broken, the file locked or read-only, or memory short. */
const STATES = /^SQLITE_(FULL|READONLY|IOERR|BUSY|CANTOPEN|LOCKED|NOMEM|PROTOCOL)/;

/**
 * Whether an error is about the present state of the database, so that the same write may succeed later. False for bugs of
 * statements and for a damaged file (`SQLITE_CORRUPT`, `SQLITE_NOTADB`): the same write would fail every time.
 */
export const isDatabaseState = (error: unknown): boolean =>
  error instanceof Error && "code" in error && STATES.test(String(error.code));
