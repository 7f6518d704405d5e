import { gzipSync } from "node:zlib";
import { sampleReportMail, sampleReportXml } from "../../src/testing/dmarc-reports.ts";
import { Answers, type Api, type Enrolled } from "./dmarc-api.ts";
import { type Claim, claim } from "./claims.ts";
import { type Talk, bring, greet, openTalk } from "./dmarc-smtp.ts";
import { DOMAINS } from "./dmarc-truth.ts";
import { RECEIVER, REPORTERS, REPORT_HOST } from "./hosts.ts";
import type { Supervisor } from "./processes.ts";
import { z } from "zod";

const THEME = "DMARC receiver";
/** Enrolled, and deleted in the end. */
const REVOKED = "revoked-lab.com";
const FROM = "probe@reporters-lab.net";
const BIG_BYTES = 30 * 1024 * 1024;
const BOMB_BYTES = 100 * 1024 * 1024;
const SLOW_LIMIT_MS = 75_000;
const DRIP_MS = 3_000;
const READING_MS_MAX = 20_000;
const OPENSSL_TIMEOUT_MS = 20_000;

/** What a server says to a recipient, by swaks: the code of the reply that settled it. */
const codeBySwaks = async (supervisor: Supervisor, to: string): Promise<string> => {
  const where = ["--server", `${RECEIVER.ip}:${RECEIVER.port}`, "--helo", "mail.reporters-lab.net"];
  const argv = ["swaks", ...where, "--from", FROM, "--to", to, "--quit-after", "RCPT"];
  const { stdout } = await supervisor.finish(argv);
  const replies = [...stdout.matchAll(/^<(?:-|\*\*) +(\d{3}) /gm)].map(([, code]) => code);
  // The last reply is that to QUIT.
  return replies.at(-2) ?? "none";
};

const withTalk = async <T>(work: (talk: Talk) => Promise<T>): Promise<T> => {
  const talk = await openTalk(RECEIVER);
  try {
    await greet(talk);
    return await work(talk);
  } finally {
    talk.end();
  }
};

/** Sends 30 MB although nobody asked for them, after the size was announced or not. */
const codeOfBig = async (to: string, isAnnounced: boolean): Promise<string> =>
  withTalk(async (talk) => {
    const size = isAnnounced ? ` SIZE=${BIG_BYTES}` : "";
    const { code } = await talk.say(`MAIL FROM:<${FROM}>${size}`);
    if (code >= 400) return String(code);
    await talk.say(`RCPT TO:<${to}>`);
    const { code: go } = await talk.say("DATA");
    if (go !== 354) return String(go);
    const line = `${"x".repeat(70)}\r\n`;
    await talk.write(line.repeat(Math.ceil(BIG_BYTES / line.length)));
    const end = await talk.say(".");
    const { code: after } = await talk.say("NOOP");
    return `${end.code} then ${after}`;
  });

const codesOfAuth = async (): Promise<string> => {
  const talk = await openTalk(RECEIVER);
  try {
    await talk.read();
    const { text } = await talk.say("EHLO mail.reporters-lab.net");
    const { code } = await talk.say("AUTH PLAIN AHVzZXIAcGFzcw==");
    return `${/\bAUTH\b/.test(text) ? "offered" : "not offered"}, ${code >= 500 ? "refused" : code}`;
  } finally {
    talk.end();
  }
};

/** A client that finishes no command, a byte every few seconds; how long it was borne with. */
const codeOfSlow = async (): Promise<string> => {
  const startedMs = Date.now();
  const talk = await openTalk(RECEIVER);
  await talk.read();
  const ended = talk.read().then(
    ({ code }) => `${code}`,
    () => "closed",
  );
  const dripping = setInterval(() => talk.write("E").catch(() => undefined), DRIP_MS);
  const word = await Promise.race([ended, Bun.sleep(SLOW_LIMIT_MS).then(() => "still there")]);
  clearInterval(dripping);
  talk.end();
  const isInTime = Date.now() - startedMs < SLOW_LIMIT_MS;
  return isInTime && /^(?:4\d\d|closed)$/.test(word) ? "dropped in time" : word;
};

const starttlsBySsl = async (supervisor: Supervisor): Promise<string> => {
  const argv = ["openssl", "s_client", "-starttls", "smtp", "-connect", `${RECEIVER.ip}:${RECEIVER.port}`, "-brief"];
  const { stderr } = await supervisor.finish(argv, { timeoutMs: OPENSSL_TIMEOUT_MS });
  return /Protocol version: (\S+)/.exec(stderr)?.[1] ?? stderr.slice(0, 200);
};

const mailWith = (name: string, type: string, bytes: Uint8Array): Buffer =>
  Buffer.from(
    [
      ...[`From: ${FROM}`, "Subject: Report", "MIME-Version: 1.0", `Content-Type: ${type}; name="${name}"`],
      ...["Content-Transfer-Encoding: base64", ""],
      ...(Buffer.from(bytes)
        .toString("base64")
        .match(/.{1,76}/g) ?? []),
      "",
    ].join("\r\n"),
  );

const DOCTYPE = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><feedback>&a;</feedback>';

/** A report without the end tag of its first row. */
const torn = (): string => sampleReportXml({ domain: REVOKED, reportId: "torn" }).replace("</row>", "");

/** Mails that are taken, and what has to be found in them. */
const taken = (): ReadonlyArray<readonly [what: string, bytes: Uint8Array, expected: string]> => [
  ["a report about somebody else's domain", sampleReportMail({ domain: "bank-lab.com" }), "quarantined foreign_domain"],
  [
    "a bomb of 100 MB",
    mailWith("r.xml.gz", "application/gzip", gzipSync(new Uint8Array(BOMB_BYTES))),
    "rejected entry_too_large",
  ],
  ["a report of which a piece is missing", mailWith("r.xml", "text/xml", Buffer.from(torn())), "rejected truncated"],
  ["a document type", mailWith("r.xml", "text/xml", Buffer.from(DOCTYPE)), "rejected doctype"],
  ["words for people", Buffer.from(`From: ${FROM}\r\nSubject: Hello\r\n\r\nBuy now.\r\n`), "rejected no_report"],
  ["a report", sampleReportMail({ domain: REVOKED, reportId: "x" }), "stored null"],
  ["the same report again", sampleReportMail({ domain: REVOKED, reportId: "x" }), "duplicate null"],
];

const ingestion = z.object({
  id: z.string(),
  status: z.string(),
  outcome: z.string().nullable(),
  reason: z.string().nullable(),
  mail_from: z.string().nullable(),
});

/** Two domains in From, for which nobody can vouch. SPF cannot be judged here: the client is this machine. */
const forged = (): Buffer => {
  const { email } = REPORTERS.mailDmarc;
  const mail = sampleReportMail({ domain: REVOKED, email, reportId: "forged" });
  return Buffer.concat([Buffer.from("From: Somebody <somebody@evil-lab.net>\r\n"), mail]);
};

/** Brings a mail, and waits for what was found in it. */
const bringOne = async (
  api: Api,
  { to, from, bytes }: { readonly to: string; readonly from: string; readonly bytes: Uint8Array },
): Promise<readonly [answer: string, finding: string]> => {
  const { code } = await withTalk((talk) => bring(talk, { from, to, bytes }));
  const found = async () =>
    (await api.all(ingestion, "ingestions", "/ingestions")).find((each) => each.mail_from === from);
  let ended = await found();
  for (
    const endsAtMs = Date.now() + READING_MS_MAX;
    ended?.status !== "done" && Date.now() < endsAtMs;
    ended = await found()
  )
    await Bun.sleep(50);
  return [String(code), `${ended?.outcome} ${ended?.reason}`];
};

const bringAll = async (api: Api, { id, reporting_address: to }: Enrolled["domain"]): Promise<Claim[]> => {
  const cells: Claim[] = [];
  const bringAs = async (what: string, bytes: Uint8Array, expected: string): Promise<void> => {
    const [answer, finding] = await bringOne(api, { to, from: `mail${cells.length}@reporters-lab.net`, bytes });
    cells.push(
      claim(THEME, `${what}, the answer`, "250", answer),
      claim(THEME, `${what}, what it was`, expected, finding),
    );
  };
  for (const [what, bytes, expected] of taken()) await bringAs(what, bytes, expected);
  await api.ask(Answers.domain, "PATCH", `/domains/${id}`, { require_authentic_reports: true });
  await bringAs("a forged mail, where only authentic ones count", forged(), "quarantined not_authentic");
  return cells;
};

/** Tries what the receiver must not put up with, and what it must. */
export const runRefusals = async (
  supervisor: Supervisor,
  api: Api,
  enrolled: ReadonlyMap<string, Enrolled>,
): Promise<readonly Claim[]> => {
  const slow = codeOfSlow();
  const known = enrolled.get(DOMAINS.none)?.domain.reporting_address ?? "";
  const { domain } = await api.ask(Answers.enrolment, "POST", "/domains", { domain: REVOKED });
  const cell = (what: string, expected: string, got: string) => claim(THEME, what, expected, got);
  const cells = [
    cell("a known address", "250", await codeBySwaks(supervisor, known)),
    cell("an unknown address", "550", await codeBySwaks(supervisor, `nobody@${REPORT_HOST}`)),
    cell("relay", "550", await codeBySwaks(supervisor, "someone@gmail.com")),
    cell("AUTH", "not offered, refused", await codesOfAuth()),
    cell("30 MB, announced", "552", await codeOfBig(known, true)),
    cell("30 MB, unannounced", "552 then 250", await codeOfBig(known, false)),
    cell("STARTTLS by openssl", "TLSv1.3", await starttlsBySsl(supervisor)),
    ...(await bringAll(api, domain)),
    cell("an address before its domain is deleted", "250", await codeBySwaks(supervisor, domain.reporting_address)),
    cell("the deletion", "204", String((await api.send("DELETE", `/domains/${domain.id}`)).status)),
    cell("an address after its domain was deleted", "550", await codeBySwaks(supervisor, domain.reporting_address)),
    cell("the deleted domain", "404", String((await api.send("GET", `/domains/${domain.id}`)).status)),
  ];
  return [...cells, cell("a client that never finishes a command", "dropped in time", await slow)];
};
