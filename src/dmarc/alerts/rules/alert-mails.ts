import { MailBatcher, type Mailing, type MailRuntime } from "../../../notifications/mail/mail-batcher.ts";
import {
  type MailContent,
  action,
  line,
  list,
  type MailBlock,
  type MailItem,
  type MailSection,
} from "../../../notifications/mail/mail-content.ts";
import { formatCount, cutLine, minuteTime, oneLine, plural, shortName } from "../../../notifications/mail/mail-text.ts";
import {
  allDomainsLink,
  domainLink,
  type LinkedDomain,
  publishActions,
  recordToPublish,
  sourceLink,
} from "./domain-links.ts";
import { AlertMailQueue, type QueuedAlert } from "./mail-queue-store.ts";
import type { z } from "zod";
import { ALERT_RULES, type AlertRule } from "../../records/domains/raise.ts";
import { ALERT_DATA, type AlertData, readAlertBody } from "./alert-data.ts";
import { excessiveAdvice } from "./excessive-reporters.ts";

const ALERTS_MAX = 100;
const MINUTE_MS = 60_000;

/** Mails the queued alerts to their recipients: one mail about all that happened in a minute, and at most one in ten minutes. */
export const createAlertMails = (runtime: MailRuntime, mailing: Mailing): MailBatcher<QueuedAlert> =>
  new MailBatcher(runtime, {
    name: "DMARC alert mail",
    queue: new AlertMailQueue(runtime.db),
    mailing,
    compose: (rows) => {
      const alerts = rows.flatMap((row) => alertSection(row) ?? []);
      return alerts.length === 0 ? null : alertMail(alerts);
    },
    topicOf: ({ accountId }) => (accountId === null ? null : { accountId, kind: "dmarc_alerts" }),
    gatherMs: MINUTE_MS,
    intervalMs: 10 * MINUTE_MS,
  });

const alertMail = (alerts: readonly AlertSection[]): MailContent => {
  const more = alerts.length - ALERTS_MAX;
  return {
    subject: subjectOf(alerts),
    sections: alerts.slice(0, ALERTS_MAX),
    closing: [
      ...(more > 0 ? [`and ${formatCount(more)} more.`, allDomainsLink()] : []),
      "You receive this mail as a recipient of these domains, or of all mail of the account.",
    ],
  };
};

const subjectOf = (alerts: readonly AlertSection[]): string => {
  const [first] = alerts;
  if (alerts.length === 1 && first !== undefined) return first.heading;
  const domains = new Set(alerts.map(({ domain }) => domain));
  const where = domains.size === 1 ? first?.domain : `${domains.size} domains`;
  return `DMARC: ${alerts.length} alerts for ${where}`;
};

/** An alert as a section of a mail; its heading names the domain. */
interface AlertSection extends MailSection {
  readonly domain: string;
  readonly domainId: string;
}

type Blocks = readonly (MailBlock | null)[];

const ITEMS_MAX = 10;
const ITEM_CHARACTERS_MAX = 500;

/** The section of a queued alert; null when the alert or its domain was deleted meanwhile. */
export const alertSection = (queued: QueuedAlert): AlertSection | null => {
  const { atMs, body, domain, domainId, label } = queued;
  const rule = ALERT_RULES.find((known) => known === queued.rule);
  if (rule === undefined || atMs === null || body === null || domain === null || domainId === null) return null;
  const { summary, data } = readAlertBody(body);
  const sentence = oneLine(summary);
  const when = minuteTime(atMs);
  return {
    domain,
    domainId,
    heading: namesDomain(sentence, domain) ? sentence : `${domain}: ${sentence}`,
    blocks: [
      ...BLOCKS[rule](data, { id: domainId, domain }),
      line(label === null ? when : `${shortName(label)}, ${when}`, "muted"),
    ],
  };
};

/** Whether a sentence begins with the domain itself, not with a name below it. */
const namesDomain = (sentence: string, domain: string): boolean =>
  sentence.startsWith(domain) && !/^[\w.-]/.test(sentence.slice(domain.length).replace(/^\.(?=\s|$)/, ""));

const items = (texts: readonly MailItem[], total = texts.length): MailBlock | null =>
  list(
    null,
    texts.map(({ text, lines = [] }) => ({
      text: cutLine(text, ITEM_CHARACTERS_MAX),
      lines: lines.map((each) => cutLine(each, ITEM_CHARACTERS_MAX)),
    })),
    { max: ITEMS_MAX, total },
  );

const texts = (...all: readonly string[]): MailBlock | null => items(all.map((text) => ({ text })));

/** The blocks of an alert by its data; none where the data is of another version, for a mail must not fail on that. */
const blocksOf =
  <T>(schema: z.ZodType<T>, write: (data: T, context: LinkedDomain) => Blocks) =>
  (data: unknown, context: LinkedDomain): Blocks => {
    const read = schema.safeParse(data);
    return read.success ? write(read.data, context) : [];
  };

const BLOCKS: Readonly<Record<AlertRule, (data: unknown, context: LinkedDomain) => Blocks>> = {
  status_changed: blocksOf(ALERT_DATA.status_changed, ({ status, checks }, context) => [
    texts(...checks.filter(({ ok }) => ok === false).map(({ message }) => message)),
    ...(status === "active" ? [] : publishActions(context, recordToPublish(checks))),
  ]),

  record_changed: blocksOf(ALERT_DATA.record_changed, ({ previous_record: before, record }, context) => [
    before === record ? null : texts(`Before: ${before ?? "no record"}`, `Now: ${record ?? "no record"}`),
    before === null || record !== null
      ? null
      : action(`To restore it, publish this TXT record at _dmarc.${context.domain}:`, before),
    action("If you did not make this change, somebody else can change your DNS."),
    domainLink(context, "record", "Show the history of the record"),
  ]),

  policy_weakened: blocksOf(ALERT_DATA.policy_weakened, ({ trigger, record, reported }, context) => {
    const found = reported === undefined ? [] : [`Found by: ${reported.reporters.map(shortName).join(", ")}`];
    return [
      texts(...found, `Record at the last check: ${record ?? "none"}`),
      trigger === "reports"
        ? action(
            "The weaker record was published between two checks. If you did not publish it, find out who can change your DNS, and whether all name servers of the domain serve the same record.",
          )
        : action(
            "More forged mail is delivered now. If you did not make this change, publish the previous record again. It is in the history.",
          ),
      domainLink(context, "record", "Show the history of the record"),
    ];
  }),

  new_source: blocksOf(ALERT_DATA.new_source, ({ count, sources }, context) => [
    items(
      sources.map((source) => ({ text: `${sourceName(source)}: ${passed(source)}` })),
      count,
    ),
    ...classifyBlocks(sources, context),
  ]),

  new_subdomain: blocksOf(ALERT_DATA.new_subdomain, ({ count, names }, context) => [
    items(
      names.map((name) => ({ text: `${shortName(name.name)}: ${passed(name)}` })),
      count,
    ),
    action("If it is not yours, somebody else uses your domain. np=reject protects names that do not exist."),
    domainLink(context, "advice", "Your next step"),
  ]),

  failure_spike: blocksOf(ALERT_DATA.failure_spike, ({ state, sources }, context) => [
    items(
      sources.map((source) => ({
        text: `${sourceName(source)}: ${source.failing} of ${plural(source.messages, "message")} failed DMARC`,
        lines: source.causes.map(({ message }) => message),
      })),
    ),
    state === "ended" ? null : failingLink(sources, context),
  ]),

  spoofing_campaign: blocksOf(ALERT_DATA.spoofing_campaign, ({ messages, rejected, quarantined }, context) => [
    texts(`Receivers rejected ${rejected} and quarantined ${quarantined} of these messages.`),
    // Receivers apply the policy already: nothing is left to do.
    ...((rejected + quarantined) * 2 >= messages
      ? []
      : [action("With p=reject, receivers refuse such mail."), domainLink(context, "advice", "Your next step")]),
  ]),

  reports_stopped: blocksOf(ALERT_DATA.reports_stopped, (_, context) => [
    action("Check that the DMARC record still has the reporting address in rua."),
    domainLink(context, "record", "Show the record and check it now"),
  ]),

  tls_failures: blocksOf(ALERT_DATA.tls_failures, (data, context) => {
    const { state, advice, policy_type: type, reporters, mx_hosts: hosts } = data;
    if (state === "ended") return [];
    return [
      texts(
        advice,
        ...(type === null ? [] : [`Policy: ${type}`]),
        ...(reporters.length === 0 ? [] : [`Reported by ${reporters.map(shortName).join(", ")}`]),
        ...hosts.map(({ host, sessions }) => `${host}: ${plural(sessions, "session")} failed`),
      ),
      domainLink(context, "tls", "Show the TLS reports"),
    ];
  }),

  excessive_reporter: blocksOf(ALERT_DATA.excessive_reporter, ({ count, reporters }, context) => [
    items(
      reporters.map(({ name, messages }) => ({ text: `${shortName(name)}: ${plural(messages, "message")}` })),
      count,
    ),
    texts(`${excessiveAdvice({ count }).counted} ${excessiveAdvice({ count }).why}`),
    action(excessiveAdvice({ count }).todo),
    domainLink(context, "reports", "Show the reports"),
  ]),
};

type EventSource = AlertData<"new_source">["sources"][number];

const sourceName = ({ name, service, classification }: EventSource): string => {
  const known = service === null || service === name ? "" : ` (${shortName(service)})`;
  return `${shortName(name)}${known}, ${classification}`;
};

const passed = ({ messages, aligned }: { readonly messages: number; readonly aligned: number }): string =>
  `${plural(messages, "message")}, ${aligned} passed DMARC`;

/** The page of the only source; otherwise of all of them. */
const sourcesLink = (sources: readonly EventSource[], context: LinkedDomain, texts: { one: string; all: string }) => {
  const [only, ...others] = sources;
  const link = only === undefined || others.length > 0 ? null : sourceLink(context, only, texts.one);
  return link ?? domainLink(context, "sources", texts.all);
};

const failingLink = (sources: readonly EventSource[], context: LinkedDomain): MailBlock =>
  sourcesLink(sources, context, { one: "Show what fails and how to fix it", all: "Show the failing sources" });

const classifyBlocks = (sources: readonly EventSource[], context: LinkedDomain): Blocks => [
  action(
    sources.length === 1
      ? "If it is yours, classify it as authorized. If not, classify it as a threat."
      : "Classify each source: authorized if it is yours, a threat if not.",
  ),
  sourcesLink(sources, context, { one: "Classify it", all: "Show the sources" }),
];
