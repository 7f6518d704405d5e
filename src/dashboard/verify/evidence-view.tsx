import { isIP } from "node:net";
import type { ComponentChildren } from "preact";
import type { DomainEvidence, Evidence, ProbeFinding, ReplyEvidence, SessionEvidence } from "../../verify/evidence.ts";
import { Icon } from "../components/icon.tsx";
import { KIND_ICONS, type Kind } from "../components/inline.tsx";
import { Panel } from "../components/panel.tsx";
import { durationText } from "../components/figures.tsx";
import { Transcripts } from "./transcript.tsx";

/** How a verdict was found: the steps, then what was said. Also for one that is still pending. */
export const EvidenceView = ({ evidence }: { readonly evidence: Evidence }) => (
  <>
    <Panel title="How we know" aside={`${durationText(totalMs(evidence))} in all`} isFlush>
      <ol class="steps">
        <SyntaxStep {...evidence} />
        {evidence.domain !== null && <DnsStep domain={evidence.domain} />}
        {evidence.attempts.flatMap(({ number, sessions }) =>
          sessions.map((session, at) => <ConnectionStep key={`${number} ${at}`} session={session} />),
        )}
        <FindingStep evidence={evidence} />
      </ol>
    </Panel>
    <Transcripts evidence={evidence} />
  </>
);

const dnsMs = ({ dns_queries: queries }: DomainEvidence): number =>
  queries.reduce((longest, { elapsed_ms }) => Math.max(longest, elapsed_ms), 0);

/** Time that was spent, without the waits between attempts. */
const totalMs = ({ domain, attempts }: Evidence): number =>
  (domain === null ? 0 : dnsMs(domain)) +
  attempts.reduce((sum, { started_at, finished_at }) => sum + Date.parse(finished_at) - Date.parse(started_at), 0);

interface StepProps {
  readonly kind: Kind;
  readonly title: ComponentChildren;
  readonly ms?: number;
  readonly children: ComponentChildren;
}

const Step = ({ kind, title, ms, children }: StepProps) => (
  <li>
    <span class={`badge ${kind} step-icon`}>
      <Icon name={KIND_ICONS[kind]} />
    </span>
    <h3>{title}</h3>
    <span class="soft small num">{ms === undefined ? "" : durationText(ms)}</span>
    <div class="detail prose">{children}</div>
  </li>
);

const SyntaxStep = ({ address, toxic, bounce, dnsbl }: Evidence) => {
  const { problem, read_as: readAs, submitted, normalized_email: normalized, role_account: role, disposable } = address;
  if (problem !== null)
    return (
      <Step kind="bad" title="Syntax">
        <p>This is not an email address. {problem}</p>
      </Step>
    );
  const isRemarkable = role !== null || disposable !== null || bounce !== null || (toxic?.entry ?? null) !== null;
  return (
    <Step kind={isRemarkable ? "warn" : "ok"} title="Syntax and lists" ms={0}>
      <p>
        Valid (RFC 5321).
        {readAs !== null && (
          <>
            {" "}
            Read as <code>{readAs}</code>.
          </>
        )}
        {readAs === null && submitted !== normalized && (
          <>
            {" "}
            Submitted as <code>{submitted}</code>.
          </>
        )}
      </p>
      {role !== null && <p>The part before the @ belongs to a role (“{role}”), not to a person.</p>}
      {disposable !== null && <p>The domain belongs to a disposable mail service ({disposable}).</p>}
      {toxic !== null && toxic.entry !== null && <p>It is on the suppression list ({toxic.entry}).</p>}
      {bounce !== null && (
        <p>
          A message bounced on {bounce.bounced_at.slice(0, 10)} with {bounce.status}, as {bounce.source} reported.
        </p>
      )}
      {dnsbl !== null && dnsbl.outcome !== "clean" && (
        <p>
          {dnsbl.outcome === "unknown"
            ? "No DNS blocklist responded in time."
            : dnsbl.listings.map(({ listing, subject }) => `${subject} is on ${listing}.`).join(" ")}
        </p>
      )}
    </Step>
  );
};

const DOMAIN_STEPS: Readonly<Record<DomainEvidence["outcome"], readonly [kind: Kind, text: string]>> = {
  mail_hosts: ["ok", ""],
  nxdomain: ["bad", "The domain does not exist."],
  no_mail_server: ["bad", "The domain exists, but it has no MX, A or AAAA record: it cannot receive mail."],
  null_mx: ["bad", "The domain publishes a null MX (RFC 7505): it accepts no mail."],
  unroutable: ["bad", "No mail host of the domain has a public address."],
  dns_error: [
    "unknown",
    "The name servers of the domain gave no usable response. This failure says nothing about the address.",
  ],
  local_failure: ["unknown", "This machine could not send DNS queries. This failure says nothing about the address."],
};

const DnsStep = ({ domain }: { readonly domain: DomainEvidence }) => {
  const { hosts, implicit_mx: isImplicit, unverifiable_provider: provider, dns_queries: queries, outcome } = domain;
  const [kind, text] = DOMAIN_STEPS[outcome];
  return (
    <Step kind={kind} title={<>DNS of {domain.name}</>} ms={dnsMs(domain)}>
      {text !== "" && <p>{text}</p>}
      {hosts.length > 0 && (
        <p>
          {isImplicit ? "No MX record: the domain itself is the mail host. " : `${hosts.length} MX: `}
          {hosts.map(({ host, preference, addresses }, at) => (
            <>
              {at > 0 && ", "}
              <code>
                {!isImplicit && `${preference} `}
                {host}
              </code>
              {isIP(host) !== 0 && addresses.length === 0 && " (an IP address, where MX requires a host name)"}
              {addresses.length > 0 &&
                ` (${addresses.map(({ address, allowed }) => (allowed ? address : `${address}, not public`)).join(", ")})`}
            </>
          ))}
          .
        </p>
      )}
      {provider !== null && <p>{provider} gives the same reply for every recipient, so no reply is conclusive.</p>}
      {queries.length > 0 && (
        <details>
          <summary class="small">
            {queries.length === 1 ? "The DNS query" : `All ${queries.length} DNS queries`}
          </summary>
          <ul class="small">
            {queries.map(({ name, type, outcome: got, records, ttl_s, server, from_cache, elapsed_ms }, at) => (
              <li key={at}>
                <code>
                  {type} {name}
                </code>{" "}
                → <code>{got === "response" ? records.join(", ") : got.replaceAll("_", " ")}</code>{" "}
                {got === "response" && `(TTL ${ttl_s} s) `}
                {from_cache ? "from the cache" : `${server ?? "not sent"}, ${elapsed_ms} ms`}
              </li>
            ))}
          </ul>
        </details>
      )}
    </Step>
  );
};

const SOFTWARE: ReadonlyArray<readonly [RegExp, string]> = [
  [/postfix/i, "Postfix"],
  [/exim/i, "Exim"],
  [/sendmail/i, "Sendmail"],
  [/microsoft esmtp|outlook/i, "Microsoft"],
  [/google|gsmtp/i, "Google"],
  [/opensmtpd/i, "OpenSMTPD"],
  [/haraka/i, "Haraka"],
];

/** The software that a greeting names; null for another or none. */
const softwareOf = ({ transcript }: SessionEvidence): string | null => {
  const greeting = transcript.find(({ from }) => from === "server")?.text ?? "";
  return SOFTWARE.find(([form]) => form.test(greeting))?.[1] ?? null;
};

const ConnectionStep = ({ session }: { readonly session: SessionEvidence }) => {
  const { host, address, port, egress, tls, failure, connection, transcript } = session;
  if (egress === "test key")
    return (
      <Step kind="info" title={<>Connection to {host}</>}>
        <p>Simulated: test data never opens a connection.</p>
      </Step>
    );
  const hasConnected = transcript.length > 0 || connection === "reused";
  const software = softwareOf(session);
  const offered = transcript.some(({ text }) => /STARTTLS/i.test(text));
  const name = transcript
    .map(({ text }) => /^(?:EHLO|HELO) (\S+)/i.exec(text)?.[1])
    .find((found) => found !== undefined);
  // The transcript of an open connection begins with it, before this address.
  const lastMs = connection === "reused" ? undefined : transcript.find(({ from }) => from === "server")?.at_ms;
  return (
    <Step
      kind={hasConnected ? "ok" : "unknown"}
      title={<>Connection to {host}</>}
      {...(lastMs === undefined ? {} : { ms: lastMs })}
    >
      <p>
        {address}, port {port}
        {egress !== "direct" && `, from ${egress}`}
        {name !== undefined && `, as ${name}`}
        {software !== null && `, ${software} by its greeting`}
        {connection === "reused" && ", on a connection that was open already"}.{" "}
        {hasConnected &&
          (tls ? "Encrypted (STARTTLS)." : offered ? "Clear text; TLS is offered but was not needed." : "Clear text.")}
      </p>
      {failure !== null && failure.kind !== "reply" && (
        <p>
          It ended at {failure.stage.toUpperCase()}: {failure.kind.replaceAll("_", " ")}.
        </p>
      )}
    </Step>
  );
};

const FINDING_TITLES: Readonly<Record<ProbeFinding["reading"], readonly [kind: Kind, title: string]>> = {
  accepted: ["ok", "The recipient is accepted"],
  mailbox_not_found: ["bad", "The recipient is refused: no such mailbox"],
  mailbox_disabled: ["bad", "The mailbox is disabled"],
  mailbox_full: ["warn", "The mailbox is full"],
  greylisted: ["unknown", "The server asks for a later attempt (greylisting)"],
  rate_limited: ["unknown", "The server limits how often addresses may be verified"],
  blocked: ["unknown", "The server refuses our address, not the recipient"],
  sender_rejected: ["unknown", "The server refuses our sender, not the recipient"],
  tls_required: ["unknown", "The server requires an encrypted connection"],
  temporary: ["unknown", "The server has a temporary problem"],
  null_mx: ["bad", "The domain accepts no mail"],
  smtputf8_unsupported: ["bad", "The server does not accept international addresses"],
  protocol_error: ["unknown", "The server does not speak SMTP correctly"],
  ambiguous: ["unknown", "The reply does not say whether the mailbox exists"],
  unreachable: ["unknown", "No mail server could be reached"],
  timeout: ["unknown", "No mail server responded in time"],
  internal: ["unknown", "An error of this service ended the attempt"],
};

const CATCH_ALL_TEXTS: Readonly<Record<ProbeFinding["catch_all"], string | null>> = {
  yes: "A random recipient is accepted, too: the server accepts every address, so the acceptance proves nothing.",
  no: "A random recipient is refused, so the reply is about this address.",
  unknown: "Whether a random recipient would be accepted could not be found out.",
  skipped: null,
};

const CONTROL_TEXTS: Readonly<Record<NonNullable<ProbeFinding["positive_control"]>["recipient"], string>> = {
  postmaster:
    "The server accepts postmaster at the domain from the same address of ours, so the refusal is about this mailbox.",
  another:
    "The server accepted another recipient of the domain from the same address of ours shortly before, so the refusal is about this mailbox.",
};

/** The last attempt's finding: which reply decided, by which rule. */
const FindingStep = ({ evidence }: { readonly evidence: Evidence }) => {
  const last = evidence.attempts.at(-1);
  if (last === undefined) return null;
  const { finding } = last;
  const [kind, title] = FINDING_TITLES[finding.reading];
  const catchAll = CATCH_ALL_TEXTS[finding.catch_all];
  const decisive = last.sessions
    .flatMap(({ replies }) => replies)
    .find(({ rule, about }) => rule === finding.rule && (about === "submitted" || about === "us"));
  return (
    <Step kind={finding.catch_all === "yes" && kind === "ok" ? "warn" : kind} title={title}>
      {finding.reply !== null && (
        <p>
          {finding.host !== null && <code>{finding.host}</code>} replied <code>{finding.reply}</code>
          {finding.stage !== null && ` to ${finding.stage.toUpperCase()}`}.
        </p>
      )}
      {finding.rule !== null && decisive !== undefined && (
        <p>
          Rule <code>{finding.rule}</code> reads {readingOf(decisive)} as:{" "}
          {title.charAt(0).toLowerCase() + title.slice(1)}.
        </p>
      )}
      {catchAll !== null && <p>{catchAll}</p>}
      {finding.positive_control !== null && <p>{CONTROL_TEXTS[finding.positive_control.recipient]}</p>}
      {finding.catch_all_age_s !== null && (
        <p>
          The random recipient was tried {durationText(finding.catch_all_age_s * 1_000)} earlier, for another address.
        </p>
      )}
    </Step>
  );
};

const readingOf = ({ code, enhanced }: ReplyEvidence): string =>
  enhanced === null ? `code ${code}` : `${code} with ${enhanced}`;
