import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../foundation/base/clock.ts";
import { createLog } from "../foundation/base/log.ts";
import { readConfig } from "../service/config.ts";
import { openServerDatabase } from "./open-server.ts";

const folder = mkdtempSync(join(tmpdir(), "postwarden-open-server-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("no commit of a server makes a checkpoint: it would hold the event loop", () => {
  const config = readConfig({ POSTWARDEN_DATA_DIR: folder });
  if (!config.ok) throw new Error(config.error.join(" "));
  const log = createLog("warn", systemClock, () => undefined);
  const db = openServerDatabase({ path: join(folder, "postwarden.db"), config: config.value, log });
  expect(db.sqlite.query("PRAGMA wal_autocheckpoint").values()).toEqual([[0]]);
  db.close();
});
