import { describe, expect, spyOn, test } from "bun:test";
import * as fs from "node:fs/promises";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { tmpdir } from "node:os";
import type { KeyMode } from "../../foundation/base/secrets.ts";
import { createApps, type TestApp } from "../../testing/app.ts";
import { settle } from "../../testing/clock.ts";
import { DRAFT_MS_MAX, DRAFTS_PER_ACCOUNT_MAX, type DraftPreview } from "./drafts.ts";
import { uploadOptionsSchema } from "../results/schemas.ts";

const start = createApps();
const UPLOADS = join(tmpdir(), `postwarden-app-${process.pid}`, "uploads");
const AUTO = { header: "auto" } as const;
const OPTIONS = uploadOptionsSchema.parse({});

const callerOf = (app: TestApp, mode: KeyMode = "test", account = "main") => {
  if (app.service.accounts.store.findAccountByName(account) === undefined) app.newAccount(account, "scale");
  return {
    ...{ accountId: app.accountId(account), keyId: "user:1", mode, scopes: [] },
    rate: { perSecond: 1, burst: 1 },
  };
};

/** A form with a file, or with a pasted text when the file has no name. */
const formOf = (text: string | Uint8Array, fileName: string | null = "list.csv"): Request => {
  const name = fileName === null ? "" : `; filename="${fileName}"`;
  const head = `--b\r\nContent-Disposition: form-data; name="file"${name}\r\n\r\n`;
  const body = Buffer.concat([Buffer.from(head), Buffer.from(text as string), Buffer.from("\r\n--b--\r\n")]);
  return new Request("http://localhost/lists/upload", {
    method: "POST",
    headers: { "content-type": "multipart/form-data; boundary=b" },
    body,
  });
};

const previewOf = (read: DraftPreview) => {
  if (read.kind === "refused") throw new Error(read.message);
  return read.preview;
};

const files = () => readdir(UPLOADS).catch((): string[] => []);
const codeOf = (work: Promise<unknown>): Promise<unknown> => work.then(() => null).catch((error) => error.code);

describe("a draft", () => {
  test("is read as often as wanted, in other layouts too, and started once", async () => {
    const app = start();
    const caller = callerOf(app);
    const { drafts } = app.service.bulk.jobs;
    const { id, fileName, bytes } = await drafts.receive(caller, formOf("a@a.example,b@b.example\nc@c.example,\n"));
    expect([fileName, bytes]).toEqual(["list.csv", 37]);
    expect(previewOf(await drafts.preview(caller, id, AUTO)).addresses.total).toBe(2);
    expect(previewOf(await drafts.preview(caller, id, { ...AUTO, column: "1" })).rows).toMatchObject({
      total: 2,
      empty: 1,
    });
    expect(previewOf(await drafts.preview(caller, id, { header: "true" })).rows.total).toBe(1);
    const jobs = await Promise.all(
      [1, 2].map(() => app.service.bulk.jobs.startDraft(caller, id, { ...OPTIONS, column: "1", name: "Mine" })),
    );
    expect(jobs[0]).toBe(jobs[1]);
    expect(await app.service.bulk.jobs.startDraft(caller, id, OPTIONS)).toBe(jobs[0] ?? "");
    expect(app.service.bulk.jobs.list(caller, {}, { before: null, limit: 10 })).toMatchObject([
      { id: jobs[0], name: "Mine", keyId: "user:1", rowsTotal: 2, addressesTotal: 1 },
    ]);
    expect(drafts.get(caller, id).jobId).toBe(jobs[0] ?? "");
    expect(drafts.waiting(caller)).toEqual([]);
    expect(await codeOf(drafts.preview(caller, id, AUTO))).toBe("not_found");
    expect(await files()).toEqual([]);
  });

  test("is read once for the same layout", async () => {
    const app = start();
    const caller = callerOf(app);
    const { drafts } = app.service.bulk.jobs;
    const { id } = await drafts.receive(caller, formOf("a@a.example\n"));
    const [one, two] = await Promise.all([drafts.preview(caller, id, AUTO), drafts.preview(caller, id, AUTO)]);
    expect(previewOf(one).first_rows).toBe(previewOf(two).first_rows);
    for (let column = 0; column < 20; column++) await drafts.preview(caller, id, { ...AUTO, column: String(column) });
    expect(previewOf(await drafts.preview(caller, id, AUTO)).first_rows).not.toBe(previewOf(one).first_rows);
  });

  test("is there in both modes, and costs credits in live mode only", async () => {
    const app = start();
    const [test, live] = [callerOf(app, "test"), callerOf(app, "live")];
    const { drafts } = app.service.bulk.jobs;
    const { id } = await drafts.receive(test, formOf("mailbox_exists@a.example\n"));
    expect(previewOf(await drafts.preview(test, id, AUTO)).credits.required).toBe(0);
    expect(drafts.get(live, id).required).toBeNull();
    expect(previewOf(await drafts.preview(live, id, AUTO)).credits.required).toBe(1);
    expect(previewOf(await drafts.preview(test, id, AUTO)).credits.required).toBe(0);
    expect([drafts.get(test, id).required, drafts.waiting(live).length]).toEqual([1, 1]);
    const job = await app.service.bulk.jobs.startDraft(live, id, OPTIONS);
    expect(app.service.bulk.jobs.find(live, job).mode).toBe("live");
  });

  test("of another account does not exist", async () => {
    const app = start();
    const { drafts } = app.service.bulk.jobs;
    const { id } = await drafts.receive(callerOf(app), formOf("a@a.example\n"));
    for (const other of [callerOf(app, "live", "other"), callerOf(app, "test", "other")]) {
      expect(() => drafts.get(other, id)).toThrow("Upload the file again");
      expect(await codeOf(drafts.preview(other, id, AUTO))).toBe("not_found");
      expect(await codeOf(app.service.bulk.jobs.startDraft(other, id, OPTIONS))).toBe("not_found");
      expect(() => drafts.discard(other, id)).toThrow("Upload the file again");
      expect(drafts.waiting(other)).toEqual([]);
    }
    expect(drafts.waiting(callerOf(app))).toHaveLength(1);
  });

  test("expires with its file", async () => {
    const app = start();
    const caller = callerOf(app);
    const { drafts } = app.service.bulk.jobs;
    const { id, expiresAtMs } = await drafts.receive(caller, formOf("a@a.example\n"));
    expect(expiresAtMs).toBe(app.clock.nowMs() + DRAFT_MS_MAX);
    await app.advance(DRAFT_MS_MAX - 1);
    expect(await files()).toHaveLength(1);
    await app.advance(1);
    // The disk may be busy: ends with the time of the test otherwise.
    while ((await files()).length > 0) await settle();
    expect(await codeOf(drafts.preview(caller, id, AUTO))).toBe("not_found");
  });

  test("is discarded with its file, also while it is read", async () => {
    const app = start();
    const caller = callerOf(app);
    const { drafts } = app.service.bulk.jobs;
    const { id } = await drafts.receive(caller, formOf("a@a.example\n".repeat(5_000)));
    const reading = drafts.preview(caller, id, AUTO);
    await drafts.discard(caller, id);
    expect(previewOf(await reading).rows.total).toBe(5_000);
    expect(await files()).toEqual([]);
  });

  test("replaces the oldest of its account when there are too many", async () => {
    const app = start();
    const caller = callerOf(app);
    const { drafts } = app.service.bulk.jobs;
    const other = await drafts.receive(callerOf(app, "test", "other"), formOf("a@a.example\n"));
    const ids: string[] = [];
    for (let count = 0; count <= DRAFTS_PER_ACCOUNT_MAX; count++)
      ids.push((await drafts.receive(caller, formOf("a@a.example\n"))).id);
    expect(drafts.waiting(caller).map(({ id }) => id)).toEqual(ids.slice(1));
    expect(drafts.get(callerOf(app, "test", "other"), other.id).id).toBe(other.id);
    expect(await files()).toHaveLength(DRAFTS_PER_ACCOUNT_MAX + 1);
  });

  test("gives its disk space back", async () => {
    const app = start();
    const caller = callerOf(app);
    const { drafts } = app.service.bulk.jobs;
    // More than the account may have at a time.
    for (let count = 0; count < 50; count++) {
      const { id } = await drafts.receive(caller, formOf("a@a.example\n"));
      if (count % 3 === 0) await drafts.discard(caller, id);
      if (count % 3 === 1) await app.service.bulk.jobs.startDraft(caller, id, OPTIONS);
    }
    expect(await codeOf(drafts.receive(caller, formOf("")))).toBe("Invalid request body");
    expect(drafts.waiting(caller).length).toBeLessThanOrEqual(DRAFTS_PER_ACCOUNT_MAX);
  });

  test("that is refused says why and what it holds, and can be read in another way", async () => {
    const app = start();
    const caller = callerOf(app);
    const { drafts } = app.service.bulk.jobs;
    const { id } = await drafts.receive(caller, formOf("name;phone\nAda;123\nBob;456\n"));
    expect(await drafts.preview(caller, id, AUTO)).toEqual({
      ...{ kind: "refused", issues: [], sheet: null, sheets: [] },
      message: expect.stringContaining("No column with addresses"),
      sample: {
        encoding: { name: "utf-8", bom: false, isAssumed: false },
        delimiter: ";",
        records: [
          ["name", "phone"],
          ["Ada", "123"],
          ["Bob", "456"],
        ],
      },
    });
    expect(previewOf(await drafts.preview(caller, id, { ...AUTO, column: "1" })).rows.invalid_syntax).toBe(2);
  });

  test("that is no text is refused without rows", async () => {
    const app = start();
    const caller = callerOf(app);
    const { drafts } = app.service.bulk.jobs;
    const { id } = await drafts.receive(caller, formOf(Uint8Array.from({ length: 500 }, (_, n) => n % 7)));
    const read = await drafts.preview(caller, id, AUTO);
    expect(read).toMatchObject({ kind: "refused", message: expect.stringContaining("binary data"), sample: null });
  });

  test("without enough credits stays, and says how many it needs", async () => {
    const app = start();
    const caller = callerOf(app, "live");
    app.leaveCredits(1);
    const { drafts } = app.service.bulk.jobs;
    const { id } = await drafts.receive(caller, formOf("a@a.example\nb@b.example\n"));
    expect(drafts.get(caller, id).required).toBeNull();
    expect(previewOf(await drafts.preview(caller, id, AUTO)).credits).toEqual({ required: 2, available: 1 });
    expect(drafts.get(caller, id).required).toBe(2);
    expect(await codeOf(app.service.bulk.jobs.startDraft(caller, id, OPTIONS))).toBe("insufficient_credits");
    const grant = { accountId: caller.accountId, credits: 5, note: "", atMs: 0 };
    app.db.transact((tx) => app.service.accounts.ledger.grant(tx, grant));
    expect(previewOf(await drafts.preview(caller, id, AUTO)).credits).toEqual({ required: 2, available: 6 });
    expect(await app.service.bulk.jobs.startDraft(caller, id, OPTIONS)).toBeString();
  });

  test("of a pasted text has one address a line", async () => {
    const app = start();
    const caller = callerOf(app);
    const { drafts } = app.service.bulk.jobs;
    const { id, fileName } = await drafts.receive(caller, formOf("Ada <a@a.example>, b@b.example", null));
    expect(fileName).toBeNull();
    expect(previewOf(await drafts.preview(caller, id, AUTO)).rows.total).toBe(2);
    const file = await drafts.receive(caller, formOf("Ada <a@a.example>, b@b.example", "list.csv"));
    expect(previewOf(await drafts.preview(caller, file.id, AUTO)).rows.total).toBe(1);
  });

  test("of a pasted text that cannot be rewritten leaves no file and no reservation", async () => {
    const app = start();
    const caller = callerOf(app);
    const full = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    const writing = spyOn(fs, "writeFile").mockRejectedValueOnce(full);
    const pasted = () => app.service.bulk.jobs.drafts.receive(caller, formOf("a@a.example, b@b.example", null));
    try {
      expect(await pasted().catch((error: unknown) => error)).toBe(full);
      expect(writing).toHaveBeenCalledTimes(1);
    } finally {
      writing.mockRestore();
    }
    expect(await files()).toEqual([]);
    expect((await pasted()).bytes).toBe(24);
  });

  test("can be read by nobody else on the machine, and is gone after a restart", async () => {
    const app = start();
    const { id } = await app.service.bulk.jobs.drafts.receive(callerOf(app), formOf("a@a.example\n"));
    const [name = ""] = await files();
    expect((await stat(join(UPLOADS, name))).mode & 0o777).toBe(0o600);
    await app.service.bulk.jobs.stop();
    expect(() => app.service.bulk.jobs.drafts.get(callerOf(app), id)).toThrow();
    await app.service.bulk.jobs.recover();
    expect(await files()).toEqual([]);
  });
});
