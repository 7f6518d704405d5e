import { domainRecipients } from "../dmarc/domain-schemas.ts";
import { parseMonitoredDomain } from "../dmarc/records/domains/domain-platform.ts";
import { percentOf } from "../dmarc/insight/sources/rollup-rows.ts";
import { LISTED_STATUSES } from "../dmarc/alerts/overview/domain-overview-store.ts";
import { DIGESTS, type DomainRow } from "../dmarc/records/domains/domain-store.ts";
import { tagsSchema } from "../dmarc/records/domains/enrolments.ts";
import type { DomainView } from "../dmarc/records/domains/domains.ts";
import type { DnsRecordView } from "../dmarc/records/domains/publication.ts";
import { isId } from "../foundation/base/secrets.ts";
import { argument, choice, command, group, limit, option, parsed, type Terminal } from "./command.ts";
import { CommandFailed, UsageError } from "./io.ts";
import { changeOf, type CommandService, inService, readLabel, readRecipients, readWebhookUrl } from "./service.ts";
import { tableTime } from "./terminal-text.ts";

const DAYS_MAX = 3_650;

const readDays = (text: string): number => {
  const days = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (days >= 1 && days <= DAYS_MAX) return days;
  throw new UsageError(`--retention-days: "${text}" is not a whole number from 1 to ${DAYS_MAX}.`, "retention_days");
};

const readTags = (tags: readonly string[]): readonly string[] => {
  const read = tagsSchema.safeParse(tags);
  if (read.success) return read.data;
  throw new UsageError(`--tag: ${read.error.issues[0]?.message ?? "invalid"}.`, "tags");
};

const tableOf = ({ table }: Terminal, views: readonly DomainView[]): string =>
  table(
    ["DOMAIN", "STATUS", "POLICY", "REPORTS", "LAST REPORT", "MONITORING", "TAGS", "LABEL"],
    views.map((view) => [
      ...[view.domain, view.status, view.policy?.p ?? "none", view.reporting],
      ...[tableTime(view.last_report_at, "never"), view.monitoring_enabled ? "on" : "paused"],
      ...[view.tags.join(" "), view.label ?? ""],
    ]),
  );

interface ListedView extends DomainView {
  /** Of the messages of 30 days; null while unknown, and without messages. */
  readonly aligned_percent: number | null;
  /** Of the advice; `none` when nothing is left to do, null while unknown. */
  readonly next_step: string | null;
}

const listTable = ({ table }: Terminal, views: readonly ListedView[]): string =>
  table(
    ["DOMAIN", "STATUS", "POLICY", "ALIGNED", "NEXT STEP", "LAST REPORT", "MONITORING", "LABEL"],
    views.map((view) => [
      ...[view.domain, view.status, view.policy?.p ?? "none"],
      view.aligned_percent === null ? "-" : `${view.aligned_percent} %`,
      ...[view.next_step ?? "-", tableTime(view.last_report_at, "never")],
      ...[view.monitoring_enabled ? "on" : "paused", view.label ?? ""],
    ]),
  );

/** A DNS record to publish, with what to do about it. */
const recordLines = ({ host, action, value, message }: DnsRecordView): string[] => [
  message,
  ...(action === "create" || action === "update" ? [`  ${host}  TXT  "${value}"`] : []),
];

const textOf = (terminal: Terminal, view: DomainView, records: readonly DnsRecordView[]): string =>
  [
    tableOf(terminal, [view]),
    ...(view.reporting_address === null ? [] : [`Reporting address: ${view.reporting_address}`]),
    ...records.flatMap(recordLines),
  ].join("\n");

/** The domain of the account by its name or id. */
export const findDomain = ({ service: { dmarc }, caller }: CommandService, text: string): DomainRow => {
  if (isId(text)) return dmarc.domains.find(caller, text);
  const parsedName = parseMonitoredDomain(text, caller.mode);
  if (!parsedName.ok) throw new UsageError(`"${text}": ${parsedName.error}`, "domain");
  const [found] = dmarc.domains.list(caller, { domain: parsedName.value }, { before: null, limit: 1 });
  if (found !== undefined) return found;
  throw new CommandFailed(
    `${parsedName.value} is not enrolled. \`postwarden dmarc domains add ${parsedName.value}\` enrolls it.`,
    "unknown_domain",
  );
};

/** The part that commands about one domain have in common. */
export const onDomain = { on: inService("domains"), args: { text: argument("<domain>", "enrolled domain or its id") } };

const SETTINGS = {
  label: option("<text>", "your own text about the domain"),
  webhookUrl: option("<url>", "URL for events about the domain"),
  recipient: option("<address...>", "addresses for alert mail and digests"),
  tag: option("<tag...>", "groups of the domain, such as a client"),
};

export const DOMAIN_COMMANDS = group(
  {
    description: "Enroll, show, change and delete the domains that an account monitors.",
    example: "dmarc domains add example.com --account acme",
  },
  {
    list: command({
      description: "List domains, worst first, with their aligned share of 30 days and the next step.",
      example: "dmarc domains list",
      on: inService("domains"),
      options: {
        status: choice("<status>", LISTED_STATUSES, "only this status"),
        tag: option("<tag>", "only domains with this tag"),
        limit: limit(100, 10_000),
      },
      run(context, { status = null, tag, limit: shown }) {
        const { domains, overview } = context.service.dmarc;
        const page = { text: "", tag: tag?.toLowerCase() ?? null, order: "worst", limit: shown, offset: 0 } as const;
        const listed = overview.list(context.caller, { status, ...page }).domains;
        const views = listed.map(({ row, overview: known }) => ({
          ...domains.view(row),
          aligned_percent: known === null ? null : percentOf(known.aligned30, known.messages30),
          next_step: known === null ? null : (known.next?.action ?? "none"),
        }));
        context.print({ domains: views }, () => listTable(context, views));
      },
    }),
    add: command({
      description: "Enroll a domain and print the DNS record to publish.",
      example: "dmarc domains add example.com --recipient ops@example.com",
      on: inService("domains"),
      args: { domain: argument("<domain>", "domain in the From address of mails") },
      options: SETTINGS,
      async run(context, { domain, label = null, webhookUrl, recipient: recipients = [], tag: tags = [] }) {
        const { service, caller, perform, print } = context;
        const { domains } = service.dmarc;
        const wanted = {
          domain,
          label: label === null ? null : readLabel(label, "--label"),
          recipients: readRecipients(domainRecipients, recipients),
          tags: readTags(tags),
          webhookUrl: webhookUrl === undefined ? null : readWebhookUrl(context, webhookUrl, "--webhook-url"),
        };
        const enrolled = await perform(
          { action: "dmarc.domains.add", subject: domain },
          () => domains.enrol(caller, wanted),
          ({ created }) => created,
        );
        const view = domains.view(enrolled.domain);
        const { created, dnsRecords: dns_records } = enrolled;
        print({ created, domain: view, dns_records }, () =>
          [...(created ? [] : ["The domain was enrolled already."]), textOf(context, view, dns_records)].join("\n"),
        );
      },
    }),
    show: command({
      description: "Show a domain, its settings and the DNS records to publish.",
      ...onDomain,
      example: "dmarc domains show example.com",
      async run(context, { text }) {
        const { domains } = context.service.dmarc;
        const row = findDomain(context, text);
        const { dnsRecords: dns_records, serviceRecords: service_records } = await domains.dns(context.caller, row.id);
        const domain = domains.view(row);
        context.print({ domain, dns_records, service_records }, () => textOf(context, domain, dns_records));
      },
    }),
    verify: command({
      description: "Check the DNS of a domain now and update its status.",
      ...onDomain,
      example: "dmarc domains verify example.com",
      async run(context, { text }) {
        const { domains } = context.service.dmarc;
        const { id, domain: name } = findDomain(context, text);
        const done = { action: "dmarc.domains.check", subject: name };
        const verified = await context.perform(done, () => domains.verify(context.caller, id));
        const { previousStatus: previous_status, result } = verified;
        const { checks, dnsRecords: dns_records } = result;
        const domain = domains.view(verified.domain);
        context.print({ domain, previous_status, checks, dns_records }, () => textOf(context, domain, dns_records));
      },
    }),
    update: command({
      description: 'Change the settings of a domain; "" removes a label, a URL, the recipients or the tags.',
      example: "dmarc domains update example.com --digest weekly --recipient ops@example.com",
      ...onDomain,
      options: {
        ...SETTINGS,
        digest: choice("<period>", DIGESTS, "how often a digest is mailed"),
        monitoring: choice("<state>", ["on", "off"], "whether scheduled DNS checks run"),
        retentionDays: parsed("<n>", "how long reports are stored", readDays),
      },
      async run(context, { text, label, webhookUrl, recipient, tag, digest, monitoring, retentionDays }) {
        const { domains } = context.service.dmarc;
        const change = changeOf({
          label: label === "" ? null : label && readLabel(label, "--label"),
          webhookUrl: webhookUrl === "" ? null : webhookUrl && readWebhookUrl(context, webhookUrl, "--webhook-url"),
          recipients: recipient && readRecipients(domainRecipients, recipient),
          tags: tag === undefined ? undefined : readTags(tag.filter((one) => one !== "")),
          digest,
          monitoringEnabled: monitoring === undefined ? undefined : monitoring === "on",
          retentionDays,
        });
        const before = findDomain(context, text);
        const after = { changed: Object.keys(change) };
        const done = { action: "dmarc.domains.update", subject: before.domain, after };
        const changed = await context.perform(done, () => domains.change(context.caller, before.id, change));
        const view = domains.view(changed);
        context.print(view, () => textOf(context, view, []));
      },
    }),
    remove: command({
      description: "Delete a domain with its reports; mail to its reporting address is refused from now on.",
      ...onDomain,
      example: "dmarc domains remove example.com",
      async run(context, { text }) {
        const { id, domain } = findDomain(context, text);
        const done = { action: "dmarc.domains.remove", subject: domain };
        await context.perform(done, () => context.service.dmarc.domains.remove(context.caller, id));
        context.print({ removed: domain }, () => `Removed ${domain}.`);
      },
    }),
  },
);
