import type { ComponentChildren } from "preact";
import type {
  BimiSection,
  DkimSection,
  DmarcSection,
  HealthSection,
  MtaStsSection,
  MxSection,
  SpfSection,
  TlsRptSection,
} from "../../dmarc/insight/health/health-schema.ts";
import type { DkimKeySummary } from "../../dmarc/insight/health/dkim.ts";
import { Badge, type Kind } from "../components/inline.tsx";
import { CopyBlock, Mono } from "../components/copy.tsx";
import { Table } from "../components/table.tsx";
import { durationText, countText, numberText } from "../components/figures.tsx";

/** What a section found published, whether good or bad. */
export const SectionFacts = ({ section }: { readonly section: HealthSection }) => {
  switch (section.code) {
    case "spf":
      return <SpfFacts {...section} />;
    case "dkim":
      return <DkimFacts {...section} />;
    case "mx":
      return <MxFacts {...section} />;
    case "mta_sts":
      return <MtaStsFacts {...section} />;
    case "tls_rpt":
      return <TlsRptFacts {...section} />;
    case "bimi":
      return <BimiFacts {...section} />;
    case "dmarc":
      return <DmarcFacts {...section} />;
    default:
      return section satisfies never;
  }
};

/** What a section has published. Without a response that is not known, which is not the same as nothing. */
const Published = ({
  record,
  none,
  unchecked,
  children,
}: {
  readonly record: string | null;
  readonly none: string;
  readonly unchecked: readonly string[];
  readonly children?: ComponentChildren;
}) => (
  <>
    {record === null ? (
      <p class="soft">{unchecked.length > 0 ? "Not known." : none}</p>
    ) : (
      <CopyBlock text={record} label="Published record" />
    )}
    {children}
  </>
);

const ALL = {
  "+": "everybody else passes",
  "-": "everybody else fails",
  "~": "everybody else is suspicious",
  "?": "nothing is said about others",
} as const;
const LOOKUPS_MAX = 10;

const SpfFacts = ({ unchecked, record, lookups, lookups_complete, all, terms }: SpfSection) => (
  <Published record={record} unchecked={unchecked} none="No SPF record, or more than one.">
    {record !== null && (
      <p class="small">
        {lookups !== null && (
          <>
            {lookups_complete ? "" : "At least "}
            <b>{lookups}</b> of {LOOKUPS_MAX} DNS lookups.{" "}
          </>
        )}
        {all !== null && (
          <>
            <span class="mono">{`${all}all`}</span>: {ALL[all]}.
          </>
        )}
      </p>
    )}
    {terms.length > 0 && (
      <details class="small">
        <summary class="soft">{countText(terms.length, "term that causes", "terms that cause")} lookups</summary>
        <Table
          caption="Terms of the SPF record that cause DNS lookups"
          columns={[
            { title: "Term", isMono: true },
            { title: "In the record of", isMono: true },
            { title: "Lookups", align: "end" },
          ]}
          rows={terms.map(({ term, domain, depth, lookups: count }, at) => ({
            key: at,
            cells: [`${"\u00a0\u00a0".repeat(Math.min(depth, LOOKUPS_MAX))}${term}`, domain, numberText(count)],
          }))}
        />
      </details>
    )}
  </Published>
);

const KEY_STATES: Readonly<Record<DkimKeySummary["state"], readonly [Kind, string]>> = {
  valid: ["ok", "Valid"],
  revoked: ["warn", "Revoked"],
  invalid: ["bad", "Invalid"],
  missing: ["warn", "Missing"],
  unknown: ["unknown", "Not known"],
};
const ORIGINS = { reports: "seen in reports", request: "named by you", common: "a common name" } as const;

const DkimFacts = ({ keys, unchecked }: DkimSection) =>
  keys.length === 0 ? (
    <p class="soft">{unchecked.length > 0 ? "Not known." : "No key is known."}</p>
  ) : (
    <Table
      caption="DKIM keys"
      columns={[
        { title: "Selector", isMono: true, isMain: true },
        { title: "Key" },
        { title: "Type" },
        { title: "Managed at", isMono: true },
        { title: "Messages", align: "end" },
        { title: "Last seen" },
      ]}
      rows={keys.map((key) => {
        const [kind, word] = KEY_STATES[key.state];
        return {
          key: `${key.selector} ${key.domain}`,
          cells: [
            <>
              <Mono text={key.selector} />
              <span class="second">
                {key.domain} · {ORIGINS[key.origin]}
              </span>
            </>,
            <Badge kind={kind}>{word}</Badge>,
            key.type === null
              ? "–"
              : `${key.type === "rsa" ? "RSA" : "Ed25519"}${key.bits === null ? "" : ` ${key.bits}`}${key.testing ? ", test mode" : ""}`,
            key.cname === null ? <span class="soft">this domain</span> : <Mono text={key.cname} />,
            key.messages === null
              ? "–"
              : `${numberText(key.messages.passed)} passed, ${numberText(key.messages.failed)} failed`,
            key.last_seen ?? "–",
          ],
        };
      })}
    />
  );

const MxFacts = ({ hosts, null_mx, unchecked }: MxSection) => {
  if (null_mx) return <p>The domain declares that it receives no mail (null MX, RFC 7505).</p>;
  if (hosts.length === 0) return <p class="soft">{unchecked.length > 0 ? "Not known." : "No MX record."}</p>;
  return (
    <Table
      caption="MX hosts"
      columns={[
        { title: "Preference" },
        { title: "Host", isMono: true, isMain: true },
        { title: "Addresses", isMono: true },
        { title: "DANE" },
      ]}
      rows={hosts.map(({ preference, exchange, addresses, dane }) => ({
        key: `${preference} ${exchange}`,
        cells: [
          preference,
          exchange,
          addresses === null ? "not known" : addresses.length === 0 ? "none" : addresses.join(", "),
          dane === null ? "not known" : DANE_WORDS[dane],
        ],
      }))}
    />
  );
};

const DANE_WORDS: Readonly<Record<NonNullable<MxSection["hosts"][number]["dane"]>, string>> = {
  none: "no TLSA records",
  secure: "protected by DNSSEC",
  insecure: "not protected by DNSSEC",
  unusable: "no usable record",
  not_known: "DNSSEC not known",
};

const MODES: Readonly<Record<string, string>> = {
  enforce: "senders must use TLS, and deliver to no other hosts",
  testing: "senders report failures, but deliver nevertheless",
  none: "the policy is being withdrawn",
};

const MtaStsFacts = ({ unchecked, record, policy }: MtaStsSection) => (
  <Published record={record} unchecked={unchecked} none="No MTA-STS record.">
    {policy !== null && (
      <p class="small">
        Mode <b class="mono">{policy.mode ?? "invalid"}</b>
        {policy.mode !== null && MODES[policy.mode] !== undefined && `: ${MODES[policy.mode]}`}.
        {policy.max_age_s !== null && ` Senders keep the policy for ${durationText(policy.max_age_s * 1000)}.`}
        {policy.mx.length > 0 && (
          <>
            {" "}
            MX: <span class="mono">{policy.mx.join(", ")}</span>
          </>
        )}
      </p>
    )}
  </Published>
);

const TlsRptFacts = ({ unchecked, record, rua }: TlsRptSection) => (
  <Published record={record} unchecked={unchecked} none="No TLS reporting record.">
    {rua.length > 0 && (
      <p class="small">
        Reports go to <span class="mono">{rua.join(", ")}</span>
      </p>
    )}
  </Published>
);

const BimiFacts = ({ unchecked, record, location, authority }: BimiSection) => (
  <Published record={record} unchecked={unchecked} none="No BIMI record.">
    {location !== null && (
      <p class="small">
        Logo at <span class="mono">{location}</span>
        {authority === null ? ", without a certificate." : `, with the certificate at ${authority}`}
      </p>
    )}
  </Published>
);

const DmarcFacts = ({ unchecked, record, inherited_from, policy }: DmarcSection) => (
  <Published record={record} unchecked={unchecked} none="No DMARC record of its own.">
    {policy !== null && (
      <p class="small">
        {inherited_from !== null && `Inherited from ${inherited_from}: `}
        <span class="mono">p={policy.p}</span> for the domain, <span class="mono">sp={policy.sp}</span> for subdomains,{" "}
        <span class="mono">np={policy.np}</span> for subdomains that do not exist{policy.t === "y" ? "; test mode" : ""}
        .
      </p>
    )}
  </Published>
);
