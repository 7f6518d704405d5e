import type { DoctorCheck } from "../doctor/doctor-check.ts";
import { isoTime, minuteText, systemClock } from "../foundation/base/clock.ts";
import { DAY_MS } from "../foundation/base/days.ts";
import type { Config } from "../service/config.ts";
import { readService } from "../service/operating/running-service.ts";
import { InstanceStatus } from "../service/operating/status.ts";
import { VERSION } from "../service/version.ts";
import { command, toggle } from "./command.ts";
import { inDatabase } from "./data-directory.ts";
import { CommandFailed } from "./io.ts";
import { sizeText, wrapText } from "./terminal-text.ts";

type State = DoctorCheck["state"];

/** One subject on the screen. */
interface Line {
  readonly label: string;
  readonly state: State;
  readonly text: string;
}

const isoOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** `3 days`, `4 hours`, `12 minutes`. */
const duration = (ms: number): string => {
  const units = [
    ["day", DAY_MS],
    ["hour", HOUR_MS],
    ["minute", MINUTE_MS],
  ] as const;
  const [name, unit] = units.find(([, each]) => ms >= each) ?? ["minute", MINUTE_MS];
  const count = Math.max(0, Math.floor(ms / unit));
  return `${count} ${name}${count === 1 ? "" : "s"}`;
};

type ReadService = Awaited<ReturnType<typeof readService>>;

const serviceLine = ({ isLocked, url, response, sinceMs }: ReadService, nowMs: number): Line => {
  const label = "Service";
  if (!isLocked)
    return { label, state: "fail", text: "stopped. Start it: postwarden serve, or systemctl start postwarden" };
  const up = sinceMs === null ? "" : `, up ${duration(nowMs - sinceMs)}`;
  if (typeof response === "string")
    return {
      label,
      state: "fail",
      text: `does not respond at ${url} (${response})${up}: it starts, or another command has the data directory`,
    };
  const version = response.version === VERSION ? "" : `, which is not the version of this program (${VERSION})`;
  const found = response.findings.map((finding) => ` ${finding}`).join("");
  const text = `${response.isReady ? "ready" : "NOT READY"}, version ${response.version}${version}${up}.${found}`;
  return { label, state: response.isReady ? (found === "" ? "ok" : "warn") : "fail", text };
};

type Read = Awaited<ReturnType<typeof readAll>>;

const readAll = async (status: InstanceStatus, config: Config, isMeasured: boolean) => {
  const backups = status.backups();
  return {
    ...{ service: await readService(config), queues: status.queues(), backups },
    space: status.space(backups, isMeasured),
    ...{ listings: status.listings(), alerts: status.alerts(), credits: await status.lowCredits() },
  };
};

const queuesLine = ({ queues }: Read, nowMs: number): Line => {
  const { pendingVerifications, jobs, pendingReports, oldestReportMs, oldestEventMs } = queues;
  const age = (ms: number | null): string => (ms === null ? "" : ` (oldest ${duration(nowMs - ms)})`);
  const lists = jobs.map(({ status, jobs: count, rowsLeft }) => `${count} ${status}, ${rowsLeft} rows left`).join("; ");
  const events = oldestEventMs === null ? "none to deliver" : `to deliver${age(oldestEventMs)}`;
  const text = `verifications ${pendingVerifications} · lists ${lists === "" ? "0" : lists} · report mails ${pendingReports}${age(oldestReportMs)} · events ${events}`;
  return { label: "Queues", state: "ok", text };
};

const CHECKSUMS = {
  matches: "verified: its checksum matches",
  missing: "without a checksum: not verified",
  differs: "DAMAGED: its checksum differs",
  unreadable: "its checksum cannot be read",
} as const;

const backupLine = ({ backups }: Read, nowMs: number): Line => {
  const { directory, sizes, lastAtMs, bytes, checksum, check } = backups;
  const label = "Backup";
  if (directory === null || lastAtMs === null || bytes === null)
    return { label, state: check.state, text: check.message };
  const verified = checksum === null ? "verified when it was written" : CHECKSUMS[checksum];
  const isBad = checksum === "differs" || checksum === "unreadable";
  const found = `${minuteText(lastAtMs)}, ${duration(nowMs - lastAtMs)} ago, ${sizeText(bytes)}, ${verified}; ${sizes.length} in ${directory}.`;
  return {
    label,
    state: isBad ? "fail" : check.state,
    // The check begins with the same facts.
    text: check.state === "ok" ? found : `${found} ${check.message.split(" ago. ").at(-1)}`,
  };
};

const FULL_DAYS_WARN = 30;

const forecastText = ({ space: { growth } }: Read): string => {
  if (growth === null) return "no forecast yet: it needs the daily backups of three days";
  const { bytesPerDay, days, daysLeft } = growth;
  if (daysLeft === null) return `no growth in ${days} days`;
  const full = daysLeft > 3_650 ? "full in more than ten years" : `full in ${daysLeft} days`;
  return `${sizeText(bytesPerDay)} a day (measured over ${days} days): the disk is ${full}`;
};

const spaceLines = (read: Read): Line[] => {
  const { usage, growth, kinds, checks, unusedBytes, backupBytes } = read.space;
  const worst = checks.find(({ state }) => state === "fail") ?? checks.find(({ state }) => state === "warn");
  const files =
    usage === null
      ? ""
      : `database ${sizeText(usage.fileBytes)} (${sizeText(unusedBytes)} unused), log ${sizeText(usage.walBytes)}, backups ${sizeText(backupBytes)}. `;
  const disk = usage === null ? "" : `${sizeText(usage.diskFreeBytes)} of ${sizeText(usage.diskBytes)} are free.`;
  const byKind = kinds?.map(({ kind, bytes }) => `${kind} ${sizeText(bytes)}`).join(" · ");
  const isFullSoon = growth !== null && growth.daysLeft !== null && growth.daysLeft <= FULL_DAYS_WARN;
  return [
    {
      label: "Disk",
      state: worst?.state ?? "ok",
      text: `${files}${disk}${worst === undefined ? "" : ` ${worst.message}`}`,
    },
    { label: "Space", state: "ok", text: byKind ?? "not measured: the database has more than 2 GB. Pass --measure." },
    { label: "Forecast", state: isFullSoon ? "warn" : "ok", text: forecastText(read) },
  ];
};

const NAMED_MAX = 4;

/** `text` of the first few, and how many more there are. */
const someOf = <T>(items: readonly T[], text: (item: T) => string, none: string): string => {
  if (items.length === 0) return none;
  const more = items.length > NAMED_MAX ? `; ${items.length - NAMED_MAX} more accounts` : "";
  return items.slice(0, NAMED_MAX).map(text).join("; ") + more;
};

const subjectLines = ({ listings, alerts, credits }: Read): Line[] => {
  const isSevere = listings.some(({ severity }) => severity === "critical" || severity === "high");
  const listed = listings
    .map(({ severity, listings: count }) => `${count} ${severity ?? "of unknown severity"}`)
    .join(", ");
  const hasBad = alerts.some(({ worst }) => worst.severity === "bad");
  const alertOf = ({ account, open, worst }: Read["alerts"][number]) => `${account} ${open}, worst: ${worst.title}`;
  const creditOf = ({ account, available, daysLeft }: Read["credits"][number]) =>
    `${account} ${available} left${available === 0 ? "" : `, about ${daysLeft} days`}`;
  const isOut = credits.some(({ available }) => available === 0);
  return [
    {
      label: "Listings",
      state: isSevere ? "fail" : listed === "" ? "ok" : "warn",
      text: listed === "" ? "none open" : `${listed} (not acknowledged)`,
    },
    {
      label: "Alerts",
      state: hasBad ? "fail" : alerts.length > 0 ? "warn" : "ok",
      text: someOf(alerts, alertOf, "none open"),
    },
    {
      label: "Credits",
      state: isOut ? "fail" : credits.length > 0 ? "warn" : "ok",
      text: someOf(credits, creditOf, "no account runs low"),
    },
  ];
};

const linesOf = (read: Read, nowMs: number): Line[] => [
  serviceLine(read.service, nowMs),
  queuesLine(read, nowMs),
  backupLine(read, nowMs),
  ...spaceLines(read),
  ...subjectLines(read),
];

/** The screen has 40 lines: a subject that says more is cut. */
const LINES_OF_SUBJECT_MAX = 4;
const LABEL_WIDTH = 10;
const MARKS: Readonly<Record<State, string>> = { ok: " ", warn: "~", fail: "!" };

const screenOf = (lines: readonly Line[], columns: number): string =>
  lines
    .flatMap(({ label, state, text }) => {
      const margin = LABEL_WIDTH + 2;
      const wrapped = wrapText(text, columns - margin);
      const shown = wrapped.slice(0, LINES_OF_SUBJECT_MAX);
      if (wrapped.length > shown.length)
        shown[shown.length - 1] = `${(shown.at(-1) ?? "").slice(0, columns - margin - 2)} …`;
      return shown.map(
        (line, at) => `${at === 0 ? `${MARKS[state]} ${label.padEnd(LABEL_WIDTH)}` : " ".repeat(margin)}${line}`,
      );
    })
    .join("\n");

const jsonOf = (read: Read, lines: readonly Line[], nowMs: number) => {
  const { service, queues, backups, space, listings, alerts, credits } = read;
  const { response } = service;
  const isAnswered = typeof response !== "string";
  return {
    checked_at: isoTime(nowMs),
    attention: lines
      .filter(({ state }) => state !== "ok")
      .map(({ label, state, text }) => ({ subject: label.toLowerCase(), state, text })),
    service: {
      state: service.isLocked ? (isAnswered ? "running" : "unresponsive") : "stopped",
      ...{ url: service.url, since: isoOrNull(service.sinceMs), version: isAnswered ? response.version : null },
      ...{ ready: isAnswered && response.isReady, findings: isAnswered ? response.findings : [] },
    },
    queues: {
      ...{ verifications: queues.pendingVerifications, report_mails: queues.pendingReports },
      lists: queues.jobs.map(({ status, jobs, rowsLeft }) => ({ status, lists: jobs, rows_left: rowsLeft })),
      ...{ oldest_report_at: isoOrNull(queues.oldestReportMs), oldest_event_at: isoOrNull(queues.oldestEventMs) },
    },
    backup: {
      ...{ directory: backups.directory, count: backups.sizes.length, last_at: isoOrNull(backups.lastAtMs) },
      ...{ bytes: backups.bytes, checksum: backups.checksum },
    },
    space: {
      ...{ database_bytes: space.usage?.fileBytes ?? null, log_bytes: space.usage?.walBytes ?? null },
      ...{ unused_bytes: space.unusedBytes, backup_bytes: space.backupBytes, kinds: space.kinds },
      ...{ disk_free_bytes: space.usage?.diskFreeBytes ?? null, disk_bytes: space.usage?.diskBytes ?? null },
    },
    forecast:
      space.growth === null
        ? null
        : {
            bytes_per_day: space.growth.bytesPerDay,
            measured_days: space.growth.days,
            days_left: space.growth.daysLeft,
          },
    listings,
    alerts: alerts.map(({ account, open, worst }) => ({ account, open, worst: worst.title, severity: worst.severity })),
    low_credits: credits.map(({ account, available, creditsPerDay, daysLeft }) => ({
      ...{ account, available, credits_per_day: creditsPerDay, days_left: daysLeft },
    })),
  };
};

const STATUS = command({
  description: "Show on one screen how this instance fares, whether the service runs or not.",
  example: "status",
  notes:
    "! needs action, ~ deserves a look. The exit status is 1 while something needs action: the service is down or not ready, a backup is damaged, the disk is nearly full, a critical or high listing or a severe alert is open, or an account that verifies has no credits.",
  on: inDatabase,
  options: { measure: toggle("measure space by kind also in a database above 2 GB, which is read as a whole") },
  async run({ db, config, io, print }, { measure }) {
    const read = await readAll(new InstanceStatus({ db, clock: systemClock }, config), config, measure);
    const nowMs = systemClock.nowMs();
    const lines = linesOf(read, nowMs);
    print(jsonOf(read, lines, nowMs), () => screenOf(lines, io.columns));
    const urgent = lines.filter(({ state }) => state === "fail").map(({ label }) => label.toLowerCase());
    if (urgent.length > 0) throw new CommandFailed(`Needs action: ${urgent.join(", ")}.`, "attention");
  },
});

export const STATUS_COMMANDS = { status: STATUS };
