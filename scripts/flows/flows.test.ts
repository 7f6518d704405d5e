/**
 * Runs each flow of the product once, and prints the files whose functions ran, in the order of their first call. The same
 * stands in src/README.md: a flow that went another way fails, and `FLOWS=write npm run flows` writes it there.
 */
import { afterAll, expect, test } from "bun:test";
import { ReportMailRules } from "../../src/dmarc/reports/ingest/report-mail-rules.ts";
import { createApps } from "../../src/testing/app.ts";
import { BULK_PATH, postList, untilJobEnded } from "../../src/testing/bulk-requests.ts";
import { signIn } from "../../src/testing/dashboard.ts";
import { sampleReportMail } from "../../src/testing/dmarc-reports.ts";
import { createReceivers } from "../../src/testing/receiver.ts";
import { startSmtpStub } from "../../src/testing/smtp-stub.ts";
import { filesOf } from "./instrument.ts";

const start = createApps();
const newReceiver = createReceivers();
const REPORT_HOST = "reports.flows.example";
const stub = startSmtpStub({ rcpt: (address) => (address.startsWith("ada") ? "250 Ok" : "550 5.1.1 Unknown user") });
afterAll(() => stub.stop());
const ZONE = { "flows.example": { MX: [[10, "mx.flows.example"]] }, "mx.flows.example": { A: ["127.0.0.1"] } } as const;

const GUIDE = new URL("../../src/README.md", import.meta.url).pathname;
const COLUMNS = 150;

/** Lines of words that are separated by ` → `. */
const linesOf = (words: readonly string[]): string =>
  words.reduce((text, word) => {
    const line = text.slice(text.lastIndexOf("\n") + 1);
    return line.length + word.length + 3 > COLUMNS ? `${text} →\n${word}` : `${text} → ${word}`;
  });

/** Prints a flow, and compares it with the block of its name in the source guide. */
const show = async (flow: string, files: readonly string[]): Promise<void> => {
  const own = files.filter((file) => !file.startsWith("foundation/")).map((file) => file.replace(/\.tsx?$/, ""));
  const title = `${flow}: ${own.length} files, and ${files.length - own.length} of foundation/`;
  const block = `\`\`\`\n${title}\n${linesOf(own)}\n\`\`\``;
  console.log(`${title}\n${own.map((file) => `  ${file}`).join("\n")}`);
  const guide = await Bun.file(GUIDE).text();
  const written = guide.replace(new RegExp(`\`\`\`\\n${flow}: [^\`]*\`\`\``), () => block);
  if (process.env.FLOWS === "write") await Bun.write(GUIDE, written);
  else expect(guide).toBe(written);
};

test("a check", async () => {
  const app = start({ zone: ZONE, stub });
  const key = app.newKey({ mode: "live" });
  await app.request("GET", "/v1/account", { key });
  let body = {};
  const files = await filesOf(async () => {
    ({ body } = await app.verify(key, "ada@flows.example"));
  });
  expect(body).toMatchObject({ result: { sub_status: "mailbox_exists" } });
  await show("A check", files);
});

test("a list", async () => {
  const app = start({ zone: ZONE, stub });
  app.service.bulk.jobs.start();
  const key = app.newKey({ mode: "live" });
  await app.request("GET", "/v1/account", { key });
  let job = {};
  let csv = "";
  const files = await filesOf(async () => {
    const headers = { "content-type": "text/csv" };
    const { id } = await postList(app, {
      key,
      headers,
      body: new TextEncoder().encode("email,name\nada@flows.example,Ada\nnone@flows.example,Bob\n"),
    });
    job = await untilJobEnded(app, key, id);
    const headersOfKey = { authorization: `Bearer ${key.key}` };
    const results = new Request(`http://localhost${BULK_PATH}/${id}/results.csv`, { headers: headersOfKey });
    csv = await (await app.handle(results)).text();
  });
  await app.service.bulk.jobs.stop();
  expect(job).toMatchObject({ status: "completed" });
  expect(csv).toContain("none@flows.example,Bob,none@flows.example,undeliverable");
  await show("A list", files);
});

test("a report mail", async () => {
  const zone = { "own-corp.com": { TXT: [] } };
  const app = start({ zone, settings: { REPORT_HOST } });
  const accountId = app.newAccount("main", "scale");
  const { dmarc, runtime } = app.service;
  const request = { domain: "own-corp.com", label: null, webhookUrl: null, recipients: [], tags: [] };
  const { domain } = await dmarc.domains.enrol({ accountId, mode: "live" }, request);
  const address = `${domain.token}@${REPORT_HOST}`;
  const domains = dmarc.stores.domains;
  const rules = new ReportMailRules(runtime, { ...dmarc.reports, domains, reportHost: REPORT_HOST });
  await dmarc.start();
  let outcome = "";
  const files = await filesOf(async () => {
    const bytes = sampleReportMail({ domain: "own-corp.com" }, address);
    outcome = await rules.acceptMail({
      ...{
        bytes,
        recipients: [address],
        tls: true,
        client: "192.0.2.25",
        helo: "mx.example",
        mailFrom: "dmarc@example.com",
      },
    });
    await dmarc.reports.ingester.idle();
  });
  await dmarc.stop();
  expect(outcome).toBe("accepted");
  expect(app.db.sqlite.query("SELECT count(*) AS reports FROM dmarc_reports").get()).toEqual({ reports: 1 });
  await show("A report mail", files);
});

test("a change on a blocklist", async () => {
  const receiver = newReceiver();
  const app = start({ settings: { WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8" } });
  const key = app.newKey();
  const { dispatcher } = app.service.notifications;
  const added = await app.request("POST", "/v1/blacklist/targets", {
    ...{ key, body: { target: "listed.example", webhook_url: receiver.url } },
  });
  expect(added.status).toBe(201);
  dispatcher.start();
  await app.advance(120_000);
  const files = await filesOf(async () => {
    await app.service.blocklist.scheduler.checkDue();
    dispatcher.wake();
    await receiver.untilReceived(1);
    await dispatcher.stop();
  });
  expect(receiver.received[0]?.event.type).toBe("blacklist.listed");
  await show("A change on a blocklist", files);
});

test("a page with a form", async () => {
  const app = start();
  const visitor = await signIn(app);
  await visitor.get("/blocklists/none");
  let text = "";
  const files = await filesOf(async () => {
    await visitor.get("/blocklists/new");
    ({ text } = await visitor.submit("/blocklists/new", { targets: "own-corp.com" }));
  });
  expect(text).toContain("own-corp.com");
  await show("A page with a form", files);
});
