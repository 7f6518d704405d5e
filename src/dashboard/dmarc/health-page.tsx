import { z } from "zod";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import { findingReason } from "../../dmarc/insight/health/finding-reasons.ts";
import type { HealthFinding } from "../../dmarc/insight/health/health-finding.ts";
import type { DomainHealth, HealthSection } from "../../dmarc/insight/health/health-sections.ts";
import { Badge } from "../components/badge.tsx";
import { CopyBlock } from "../components/copy.tsx";
import { Button, PostForm } from "../components/form.tsx";
import { Callout, Panel } from "../components/panel.tsx";
import { Time } from "../components/time.tsx";
import { formAction, page, type PageRoute } from "../page.ts";
import { redirectTo } from "../redirect.ts";
import { DomainHead } from "./domain-head.tsx";
import { SectionFacts } from "./health-facts.tsx";
import {
  healthSentence,
  orderedFindings,
  orderedSections,
  SECTION_WORDS,
  SEVERITY_WORDS,
  STATUS_WORDS,
} from "./health-words.ts";
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
                <p class="soft small">That is no finding: run it again when the DNS responds.</p>
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
        <b>{message}</b>
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
