import { type Advice, conclusionOf } from "../dmarc/insight/advice/advice-model.ts";
import { tlsReportView } from "../dmarc/insight/queries/reports.ts";
import { ReportReader } from "../dmarc/insight/queries/report-reader.ts";
import { SourceAddressReader } from "../dmarc/insight/queries/source-address-routes.ts";
import { OwnHostReader } from "../dmarc/insight/queries/own-host-routes.ts";
import { rangeOf } from "../dmarc/insight/queries/domain-query.ts";
import { DomainSources } from "../dmarc/insight/sources/domain-sources.ts";
import { SourceClassifier } from "../dmarc/insight/sources/source-classifier.ts";
import { CLASSIFICATIONS } from "../dmarc/insight/sources/rollup-store.ts";
import { isSourceKey } from "../dmarc/insight/sources/source-identity.ts";
import type { Source } from "../dmarc/insight/sources/source-response.ts";
import { systemClock } from "../foundation/base/clock.ts";
import { argument, choice, command, day, limit, option, required, type Terminal, toggle } from "./command.ts";
import { findDomain, onDomain } from "./dmarc-domains.ts";
import { UsageError } from "./io.ts";
import { recordChangeView } from "../dmarc/insight/queries/record-history-routes.ts";
import { tableTime, wrapText } from "./terminal-text.ts";

const tableOf = ({ table }: Terminal, sources: readonly Source[]): string => {
  const rows = sources.map(({ key, name, classification, classified_by, messages, aligned_percent, failing }) => [
    ...[key, name, classification + (classified_by === "user" ? " *" : "")],
    ...[messages, aligned_percent ?? "", failing].map(String),
  ]);
  return table(["KEY", "NAME", "CLASS", "MESSAGES", "ALIGNED %", "FAILING"], rows);
};

const SOURCES = command({
  description: "List who sends in the name of a domain, by the reports of the last 30 days.",
  ...onDomain,
  example: "dmarc sources example.com --class unknown",
  options: {
    class: choice("<class>", CLASSIFICATIONS, "only this class"),
    byNetwork: toggle("list each network of unauthenticated mail"),
    limit: limit(50, 10_000),
  },
  async run(context, { text, class: wanted, byNetwork, limit: shown }) {
    const { rollups } = context.service.dmarc;
    const range = rangeOf({}, systemClock.nowMs());
    const domain = findDomain(context, text);
    const all = await DomainSources.read(rollups, domain, (read) => read.sources(range, { byNetwork }));
    const sources = all
      .filter(({ classification }) => wanted === undefined || classification === wanted)
      .slice(0, shown);
    context.print({ sources }, () => tableOf(context, sources));
  },
});

const OWN_HOSTS = command({
  description: "List a domain's own servers one by one, by the reports of the last 30 days.",
  ...onDomain,
  example: "dmarc own-hosts example.com --failing",
  options: {
    failing: toggle("only servers of which less than 90 % of the mail passes"),
    department: option("<name>", "only servers of this department, such as chemie.example.com"),
    csv: { ...toggle("print all as CSV"), conflicts: "json" },
    limit: limit(50, 10_000),
  },
  async run(context, { text, failing, department, csv, limit: shown }) {
    const { caller, io, service, print, table } = context;
    const reader = new OwnHostReader(service.dmarc.context);
    const { id } = findDomain(context, text);
    const found = await reader.list(caller, id, { result: failing ? "failing" : undefined, department });
    if (csv) return io.write(Buffer.from(await reader.csvText(found)));
    const hosts = await reader.view(found, found.hosts.slice(0, shown));
    print({ own_hosts: hosts }, () =>
      table(
        ["SERVER", "ADDRESS", "MESSAGES", "FAILING", "ALIGNED %", "FIRST", "LAST", "LAST FAILURE"],
        hosts.map((host) => [
          ...[host.reverse_name ?? "", host.ip, String(host.messages), String(host.failing)],
          ...[String(host.aligned_percent ?? ""), host.first_day, host.last_day, host.last_failing_day ?? ""],
        ]),
      ),
    );
  },
});

const ADDRESSES = command({
  description: "List the addresses of a source, those with the most failing messages of the last 30 days first.",
  on: onDomain.on,
  example: "dmarc addresses example.com service:brevo --failing --csv",
  args: { ...onDomain.args, key: argument("<key>", "key of a source, as `dmarc sources` shows it") },
  options: {
    failing: toggle("only addresses with failing mail that was not forwarded"),
    csv: { ...toggle("print all as CSV"), conflicts: "json" },
    limit: limit(50, 10_000),
  },
  async run(context, { text, key, failing, csv, limit: shown }) {
    const { caller, io, service, print, table } = context;
    const reader = new SourceAddressReader(service.dmarc.context);
    const found = await reader.list(caller, findDomain(context, text).id, key, { failing });
    if (csv) return io.write(Buffer.from(reader.csvText(found)));
    const addresses = found.addresses.slice(0, shown);
    print({ addresses }, () =>
      table(
        ["ADDRESS", "SERVER", "MESSAGES", "FAILING", "FORWARDED", "ALIGNED %", "LAST", "NETWORK"],
        addresses.map((one) => [
          ...[one.ip, one.reverse_name ?? "", String(one.messages), String(one.failing), String(one.forwarded)],
          ...[String(one.aligned_percent ?? ""), one.last_day, one.as_name ?? ""],
        ]),
      ),
    );
  },
});

const TLS_REPORTS = command({
  description: "List the TLS reports about a domain, the most recently received first.",
  ...onDomain,
  example: "dmarc tls-reports example.com",
  options: {
    from: day("first day of periods in UTC (default: all reports)"),
    to: day("last day on which a period begins in UTC"),
    limit: limit(50, 1_000),
  },
  run(context, { text, from, to, limit: shown }) {
    const { caller, service, print, table } = context;
    const list = new ReportReader(service.dmarc.context).tlsReports(caller, findDomain(context, text).id, { from, to });
    const reports = list({ before: null, limit: shown }).map(tlsReportView);
    print({ tls_reports: reports }, () =>
      table(
        ["RECEIVED", "FROM", "TO", "REPORTER", "SUCCESSFUL", "FAILED", "FAILURES"],
        reports.map((report) => [
          ...[tableTime(report.received_at), tableTime(report.begin), tableTime(report.end), report.org_name ?? ""],
          ...[String(report.successful_sessions), String(report.failed_sessions), failuresOf(report)],
        ]),
      ),
    );
  },
});

const failuresOf = ({ policies }: ReturnType<typeof tlsReportView>): string =>
  [...new Set(policies.flatMap(({ failures }) => failures.map(({ result_type: type }) => type)))].join(" ");

const RECORD_HISTORY = command({
  description: "List the changes of a domain's DMARC, SPF, DKIM, MX and MTA-STS records, newest first.",
  ...onDomain,
  example: "dmarc record-history example.com",
  options: { limit: limit(50, 1_000) },
  run(context, { text, limit: shown }) {
    const { caller, print, service, table } = context;
    const list = service.dmarc.recordHistory.list(caller, findDomain(context, text).id);
    const changes = list({ before: null, limit: shown }).map(recordChangeView);
    print({ record_history: changes }, () =>
      table(
        ["FOUND", "KIND", "HOST", "BEFORE", "RECORDS"],
        changes.map(({ at, kind, host, before, records }) => [
          ...[tableTime(at, ""), kind, host],
          ...[before === null ? "(first seen)" : recordsText(before), recordsText(records)],
        ]),
      ),
    );
  },
});

/** As the cell of a table; the record of a domain can be absent. */
const recordsText = (records: readonly string[]) => (records.length === 0 ? "(none)" : records.join(" | "));

const AUTOMATIC = "automatic";

const CLASSIFY = command({
  description: "Say what sources are; this overrides the automatic classification.",
  example: "dmarc classify example.com authorized org:example.net",
  on: onDomain.on,
  args: {
    ...onDomain.args,
    kind: required(
      choice(
        "<class>",
        [...CLASSIFICATIONS, AUTOMATIC] as const,
        `what they are; ${AUTOMATIC} restores the automatic classification`,
      ),
    ),
    keys: argument("<key...>", "keys of sources, as `dmarc sources` shows them"),
  },
  check({ keys }) {
    const wrong = keys.find((key) => !isSourceKey(key));
    if (wrong !== undefined) throw new UsageError(`"${wrong}" is not the key of a source.`, "key");
  },
  async run(context, { text, kind, keys }) {
    const { db, caller, service } = context;
    const { id, domain } = findDomain(context, text);
    const classifier = new SourceClassifier({ db, clock: systemClock }, service.dmarc.rollups);
    const change = { keys, classification: kind === AUTOMATIC ? null : kind };
    const done = { action: "dmarc.classify", subject: domain, after: { keys, class: kind } };
    const sources = await context.perform(done, () =>
      classifier.classify(() => service.dmarc.domains.find(caller, id), change),
    );
    context.print({ sources }, () => tableOf(context, sources));
  },
});

/** The advice in lines of at most `columns` characters. */
const adviceText = (advice: Advice, columns: number): string => {
  const { stage, next, requirements, notes } = advice;
  const marked = (mark: string, text: string): string[] =>
    wrapText(text, Math.max(40, columns) - mark.length).map(
      (line, at) => `${at === 0 ? mark : " ".repeat(mark.length)}${line}`,
    );
  return [
    `Stage: ${stage}`,
    ...(next === null
      ? marked("", conclusionOf(advice))
      : [
          ...marked("Next: ", `${next.action}. ${next.why}`),
          ...next.steps.flatMap((step) => marked("  - ", step)),
          ...(next.record === null ? [] : [`  Publish at _dmarc: ${next.record}`]),
        ]),
    ...requirements.flatMap(({ met, message }) => marked(met ? "[x] " : "[ ] ", message)),
    ...notes.flatMap(({ message }) => marked("Note: ", message)),
  ].join("\n");
};

const ADVICE = command({
  description: "Show the next step of a domain towards enforcement.",
  ...onDomain,
  example: "dmarc advice example.com",
  async run(context, { text }) {
    const advice = await context.service.dmarc.advise(findDomain(context, text));
    context.print(advice, () => adviceText(advice, context.io.columns));
  },
});

export const SOURCE_COMMANDS = {
  sources: SOURCES,
  "own-hosts": OWN_HOSTS,
  addresses: ADDRESSES,
  "tls-reports": TLS_REPORTS,
  "record-history": RECORD_HISTORY,
  classify: CLASSIFY,
  advice: ADVICE,
};
