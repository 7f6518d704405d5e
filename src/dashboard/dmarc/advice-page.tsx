import { z } from "zod";
import { DAY_MS } from "../../foundation/base/days.ts";
import { type AdviceProgress, progressOf } from "../../dmarc/insight/advice/advice-progress.ts";
import type { Advice } from "../../dmarc/insight/advice/advice-schema.ts";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import type { Publication } from "../../dmarc/records/domains/publication.ts";
import { splitStrings } from "../../dmarc/records/record/record-published.ts";
import { Badge } from "../components/badge.tsx";
import { Icon } from "../components/icon.tsx";
import { ButtonLink, Link } from "../components/link.tsx";
import { Num } from "../components/number.tsx";
import { Callout, Columns, Panel } from "../components/panel.tsx";
import { Table } from "../components/table.tsx";
import { Time } from "../components/time.tsx";
import { page, type PageRoute } from "../page.ts";
import {
  noteText,
  requirementFigures,
  requirementTitle,
  stepKind,
  stepList,
  stepReason,
  stepTitle,
} from "./advice-words.ts";
import { DomainHead } from "./domain-head.tsx";
import { PublishRecord, RecordDiff, TagChanges } from "./record-text.tsx";
import type { DmarcReportUseCases } from "./use-cases.ts";

interface AdviceProps {
  readonly domain: DomainRow;
  readonly advice: Advice;
  readonly publication: Publication;
  readonly progress: AdviceProgress;
}

/** The way of a domain to enforcement: the next step, and what is missing for it. */
export const advicePages = ({
  clock,
  domains,
  advise,
}: Pick<DmarcReportUseCases, "clock" | "domains" | "advise">): readonly PageRoute[] => [
  page({ path: "/dmarc/:id/advice", params: z.object({ id: z.string() }) }, async ({ viewer, params: { id } }) => {
    const domain = domains.find(viewer.caller, id);
    const advice = await advise(domain);
    const progress = progressOf(advice, clock.nowMs());
    const props = { domain, advice, publication: domains.publication(domain), progress };
    return {
      title: `Advice for ${domain.domain}`,
      section: "dmarc",
      body: (
        <>
          <DomainHead
            domain={domain}
            current="advice"
            title={`Advice for ${domain.domain}`}
            meta="based on the mail of the last 30 days"
          />
          <Conclusion {...props} />
          <Ladder {...props} />
          <Columns side={<Side {...props} />}>
            <Requirements {...props} />
            <Obstacles {...props} />
            <RecordToPublish {...props} />
          </Columns>
        </>
      ),
    };
  }),
];

const Conclusion = ({ domain, advice, progress }: AdviceProps) => {
  const { next } = advice;
  const leadsToRecord = next?.action === "publish_record" || next?.action === "mend_record";
  const { notBeforeDay } = progress;
  return (
    <Callout
      kind={stepKind(advice)}
      title={stepTitle(advice)}
      {...(advice.requirements.length > 0
        ? { aside: `${progress.met} of ${progress.requirements} requirements met` }
        : {})}
      actions={
        next === null ? undefined : next.source !== null ? (
          <ButtonLink kind="main" href={sourcePath(domain, next.source)}>
            See this sender
          </ButtonLink>
        ) : leadsToRecord && next.record === null ? (
          <ButtonLink kind="main" href={`/dmarc/${domain.id}/record`}>
            See the record
          </ButtonLink>
        ) : next.record !== null ? (
          <a class="button main" href="#publish">
            See the record to publish
          </a>
        ) : undefined
      }
    >
      <p>{stepReason(advice, domain.domain)}</p>
      {next !== null && stepList(next).length > 0 && (
        <ol class="numbered">
          {stepList(next).map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ol>
      )}
      {notBeforeDay !== null && (
        <p>
          <b>
            Not before <Time atMs={notBeforeDay * DAY_MS} style="day" />:
          </b>{" "}
          each stage lasts until reports about 14 days have arrived, and a report arrives a day after the mail.
        </p>
      )}
    </Callout>
  );
};

const sourcePath = ({ id }: DomainRow, key: string): string => `/dmarc/${id}/sources/${encodeURIComponent(key)}`;

const POLICIES = {
  none: ["p=none", "You learn who sends in your name. Forged mail is delivered."],
  quarantine: ["p=quarantine", "Forged mail goes to the spam folder."],
  reject: ["p=reject", "Forged mail is rejected."],
} as const;
const STATES = {
  done: ["check", "Done"],
  present: ["arrow-right", "You are here"],
  ahead: ["minus", "Ahead"],
} as const;

const Ladder = ({ progress }: AdviceProps) => (
  <ol class="ladder" aria-label="The way to enforcement">
    {progress.steps.map(({ policy, state, isRehearsal }) => {
      const [text, meaning] = POLICIES[policy];
      const [icon, word] = STATES[state];
      return (
        <li key={policy} class={state} aria-current={state === "present" ? "step" : undefined}>
          <span class="ladder-state small">
            <Icon name={icon} /> {isRehearsal ? "Rehearsal (t=y)" : word}
          </span>
          <b class="mono">{text}</b>
          <span class="soft small">{meaning}</span>
        </li>
      );
    })}
  </ol>
);

const Requirements = ({ advice: { requirements, stage } }: AdviceProps) => (
  <Panel title={stage === "reject" ? "What keeps this policy justified" : "What the next stage needs"} isFlush>
    {requirements.length === 0 ? (
      <p class="panel-body soft">Nothing.</p>
    ) : (
      <ul class="checklist">
        {requirements.map((requirement) => (
          <li key={requirement.code}>
            <Badge kind={requirement.met ? "ok" : "warn"}>{requirement.met ? "Met" : "Not yet"}</Badge>
            <div>
              <b>{requirementTitle(requirement)}</b>{" "}
              <span class="soft num-list">{requirementFigures(requirement)}</span>
              {(!requirement.met || typeof requirement.expected === "string") && (
                <p class="soft small">{requirement.message}</p>
              )}
            </div>
          </li>
        ))}
      </ul>
    )}
  </Panel>
);

const Obstacles = ({ domain, advice: { obstacles } }: AdviceProps) =>
  obstacles.length === 0 ? null : (
    <Panel title="Senders in the way" aside="last 30 days" isFlush>
      <Table
        caption="Senders that keep the next stage from being reached"
        columns={[
          { title: "Sender" },
          { title: "Problem" },
          { title: "Messages", align: "end" },
          { title: "Failing", align: "end" },
        ]}
        rows={obstacles.map(({ source, name, problem, messages, failing }) => ({
          key: source,
          cells: [
            <Link href={sourcePath(domain, source)}>{name}</Link>,
            problem === "failing" ? (
              <Badge kind="warn">Yours, fails</Badge>
            ) : (
              <Badge kind="unknown">Is it yours?</Badge>
            ),
            <Num value={messages} />,
            <Num value={failing} />,
          ],
        }))}
      />
    </Panel>
  );

const RecordToPublish = ({ domain, advice: { next }, publication }: AdviceProps) => {
  if (next === null || next.record === null) return null;
  const current = publication.advised?.current ?? null;
  const { record } = next;
  return (
    <Panel id="publish" title="The record to publish" aside="whole, in place of the present one">
      <PublishRecord host={publication.host} domain={domain.domain} value={record} strings={splitStrings(record)} />
      {current !== null && !current.includes("\n") && (
        <>
          <p class="label">What changes</p>
          <RecordDiff before={current} after={record} />
          <TagChanges before={current} after={record} />
        </>
      )}
      <p>
        <ButtonLink href={`/dmarc/${domain.id}/record`}>I published it</ButtonLink>
      </p>
    </Panel>
  );
};

const Side = ({ advice: { notes, unauthenticated_percent: left } }: AdviceProps) => (
  <Panel title="What else to know">
    {notes.length === 0 && (left ?? 0) === 0 && <p class="soft">Nothing.</p>}
    <ul class="notes">
      {notes.map((note) => (
        <li key={`${note.code} ${note.message}`}>{noteText(note)}</li>
      ))}
    </ul>
  </Panel>
);
