import { z } from "zod";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import type { HealthSeverity, HealthStatus } from "../../dmarc/insight/health/section-report.ts";
import {
  findingReason,
  type HealthFinding,
  type DomainHealth,
  type HealthSection,
} from "../../dmarc/insight/health/health-schema.ts";
import { Badge, type Kind, HelpText } from "../components/inline.tsx";
import { CopyBlock } from "../components/copy.tsx";
import { Button, PostForm } from "../components/form.tsx";
import { Callout, Panel } from "../components/panel.tsx";
import { Time, countText } from "../components/figures.tsx";
import { formAction, page, type PageRoute } from "../page.ts";
import { redirectTo } from "../visit.ts";
import { DomainHead } from "./domain-head.tsx";
import { SectionFacts } from "./health-facts.tsx";
import type { DmarcReportUseCases } from "./use-cases.ts";

const params = z.object({ id: z.string() });
const PATH = "/dmarc/:id/health";

/** The DNS records that mail from and to a domain relies on: what the last run found. */
export const healthPages = ({
  domains,
  health,
}: Pick<DmarcReportUseCases, "domains" | "health">): readonly PageRoute[] => [
  page({ path: PATH, params }, async ({ viewer, params: { id } }) => {
    const domain = domains.find(viewer.caller, id);
    const last = await health.lastOf(domain);
    return {
      title: `Health of ${domain.domain}`,
      section: "dmarc",
      body: (
        <>
          <DomainHead
            domain={domain}
            current="health"
            title={`Health of ${domain.domain}`}
            meta="SPF, DKIM, MX, MTA-STS, TLS-RPT, BIMI and DMARC, checked daily"
          />
          {last === null ? <NeverRun domain={domain} /> : <Health domain={domain} health={last} />}
        </>
      ),
    };
  }),

  formAction({ path: `${PATH}/run`, params }, async ({ viewer, params: { id } }) => {
    const domain = domains.find(viewer.caller, id);
    const found = await health.healthOf(domain, { refresh: true, selectors: [], priority: "realtime" });
    return redirectTo(viewer, `/dmarc/${id}/health`, { ok: `Checked just now. ${healthSentence(found)}.` });
  }),
];

const RunNow = ({ domain, isFirst = false }: { readonly domain: DomainRow; readonly isFirst?: boolean }) => (
  <PostForm action={`/dmarc/${domain.id}/health/run`}>
    <Button kind={isFirst ? "main" : "plain"} icon="refresh-cw">
      Run now
    </Button>
  </PostForm>
);

const NeverRun = ({ domain }: { readonly domain: DomainRow }) => (
  <Callout
    kind="unknown"
    label="Not known"
    title="The health was not checked yet"
    actions={<RunNow domain={domain} isFirst />}
  >
    <p>
      New domains are checked within a few minutes, and every day after that. A run takes up to 20 seconds when the DNS
      is slow.
    </p>
  </Callout>
);

const Health = ({ domain, health }: { readonly domain: DomainRow; readonly health: DomainHealth }) => {
  const [kind, word] = STATUS_WORDS[health.status];
  const sections = orderedSections(health);
  return (
    <>
      <Callout
        {...{ kind, label: word, title: healthSentence(health) }}
        aside={
          <>
            checked <Time atMs={Date.parse(health.checked_at)} />
          </>
        }
        actions={<RunNow domain={domain} />}
      >
        <ul class="section-links">
          {sections.map(({ code, status }) => (
            <li key={code}>
              <a href={`#${code}`}>
                <Badge kind={STATUS_WORDS[status][0]}>{SECTION_WORDS[code][0]}</Badge>
                <span class="unseen"> {STATUS_WORDS[status][1]}</span>
              </a>
            </li>
          ))}
        </ul>
      </Callout>
      {sections.map((section) => (
        <Section key={section.code} section={section} />
      ))}
    </>
  );
};

const Section = ({ section }: { readonly section: HealthSection }) => {
  const [title, about] = SECTION_WORDS[section.code];
  const [kind, word] = STATUS_WORDS[section.status];
  return (
    <Panel
      id={section.code}
      title={
        <>
          {title} <span class="soft about">{about}</span>
        </>
      }
      aside={<Badge kind={kind}>{word}</Badge>}
      isFlush
    >
      {(section.findings.length > 0 || section.unchecked.length > 0) && (
        <ul class="checklist">
          {orderedFindings(section.findings).map((finding) => (
            <Finding key={`${finding.code} ${finding.message}`} {...finding} />
          ))}
          {section.unchecked.map((sentence) => (
            <li key={sentence}>
              <Badge kind="unknown">Not known</Badge>
              <div>
                <b>{sentence}</b>
                <p class="soft small">This check has no result: run it again when the DNS responds.</p>
              </div>
            </li>
          ))}
        </ul>
      )}
      <div class="panel-body facts">
        <SectionFacts section={section} />
      </div>
    </Panel>
  );
};

const Finding = ({ code, severity, message, observed, fix, record }: HealthFinding) => {
  const [kind, word] = SEVERITY_WORDS[severity];
  return (
    <li>
      <Badge kind={kind}>{word}</Badge>
      <div class="finding">
        <b>
          <HelpText text={message} />
        </b>
        <p class="small">
          <span class="soft">Why it matters:</span> {findingReason(code)}
        </p>
        {fix !== null && (
          <p class="small">
            <span class="soft">What to do:</span> {fix}
          </p>
        )}
        {record !== null && (
          <>
            <p class="soft small">
              TXT record at <span class="mono">{record.host}</span>
            </p>
            <CopyBlock text={record.value} label={`Record to publish at ${record.host}`} />
          </>
        )}
        {observed !== null && (
          <details class="small">
            <summary class="soft">What was found</summary>
            <pre class="observed">{observed}</pre>
          </details>
        )}
      </div>
    </li>
  );
};

/** What a section is about: its title and a line of explanation. */
const SECTION_WORDS: Readonly<Record<HealthSection["code"], readonly [title: string, about: string]>> = {
  spf: ["SPF", "which servers may send with this domain as envelope sender"],
  dkim: ["DKIM", "the keys that signatures of this domain are verified with"],
  mx: ["MX", "the hosts that receive mail for this domain"],
  mta_sts: ["MTA-STS", "whether senders must use TLS to reach you"],
  tls_rpt: ["TLS-RPT", "where senders report failed TLS connections to you"],
  bimi: ["BIMI", "the logo that mailbox providers may show"],
  dmarc: ["DMARC", "what receivers do with mail that fails SPF and DKIM"],
};

const SECTION_ORDER: readonly HealthSection["code"][] = ["spf", "dkim", "mx", "mta_sts", "tls_rpt", "bimi", "dmarc"];

/** The sections in the order of the page. */
const orderedSections = ({ sections }: Pick<DomainHealth, "sections">): readonly HealthSection[] =>
  sections.toSorted((a, b) => SECTION_ORDER.indexOf(a.code) - SECTION_ORDER.indexOf(b.code));

const STATUS_WORDS: Readonly<Record<HealthStatus, readonly [kind: Kind, word: string]>> = {
  ok: ["ok", "In order"],
  warnings: ["warn", "Weak"],
  problems: ["bad", "Problems"],
  unknown: ["unknown", "Not known"],
};

const SEVERITY_WORDS: Readonly<Record<HealthSeverity, readonly [kind: Kind, word: string]>> = {
  error: ["bad", "Error"],
  warning: ["warn", "Warning"],
  info: ["info", "Note"],
};

const SEVERITY_ORDER: readonly HealthSeverity[] = ["error", "warning", "info"];

/** The worst first. */
const orderedFindings = (findings: readonly HealthFinding[]): readonly HealthFinding[] =>
  findings.toSorted((a, b) => SEVERITY_ORDER.indexOf(a.severity) - SEVERITY_ORDER.indexOf(b.severity));

/** What the last run found, in a sentence. */
const healthSentence = ({ sections }: Pick<DomainHealth, "sections">): string => {
  const count = (wanted: HealthSeverity): number =>
    sections.reduce((sum, { findings }) => sum + findings.filter(({ severity }) => severity === wanted).length, 0);
  const [errors, warnings] = [count("error"), count("warning")];
  const unknown = sections.filter(({ unchecked }) => unchecked.length > 0).length;
  const parts = [
    ...(errors > 0 ? [countText(errors, "error")] : []),
    ...(warnings > 0 ? [countText(warnings, "warning")] : []),
  ];
  const found = parts.length === 0 ? "No errors or warnings" : `${parts.join(" and ")} to look at`;
  return unknown === 0 ? found : `${found}; ${countText(unknown, "section")} could not be checked completely`;
};
