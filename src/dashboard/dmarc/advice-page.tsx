import { z } from "zod";
import { DAY_MS } from "../../foundation/base/days.ts";
import {
  type AdviceProgress,
  conclusionOf,
  progressOf,
  type Advice,
  type AdviceRequirement,
  type AdviceStep,
} from "../../dmarc/insight/advice/advice-model.ts";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import type { Publication } from "../../dmarc/records/domains/publication.ts";
import { splitStrings } from "../../dmarc/records/record/record.ts";
import { Icon } from "../components/icon.tsx";
import { ButtonLink, Link, Badge, type Kind, HelpText } from "../components/inline.tsx";
import { Callout, Columns, Panel } from "../components/panel.tsx";
import { Table } from "../components/table.tsx";
import { Time, Num } from "../components/figures.tsx";
import { page, type PageRoute } from "../page.ts";
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
  domains,
  advise,
}: Pick<DmarcReportUseCases, "domains" | "advise">): readonly PageRoute[] => [
  page({ path: "/dmarc/:id/advice", params: z.object({ id: z.string() }) }, async ({ viewer, params: { id } }) => {
    const domain = domains.find(viewer.caller, id);
    const advice = await advise(domain);
    const progress = progressOf(advice);
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
  const leadsToRecord = next?.action === "publish_record" || next?.action === "fix_record";
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
        ) : next.action === "set_sends_mail" ? (
          <ButtonLink kind="main" href={`/dmarc/${domain.id}/settings`}>
            Say whether it sends mail
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
      <p>
        <HelpText text={stepReason(advice)} />
      </p>
      {next !== null && stepList(next).length > 0 && (
        <ol class="numbered">
          {stepList(next).map((text) => (
            <li key={text}>
              <HelpText text={text} />
            </li>
          ))}
        </ol>
      )}
      {notBeforeDay !== null && (
        <p>
          <b>
            Not before <Time atMs={notBeforeDay * DAY_MS} style="day" />:
          </b>{" "}
          the next stage needs the mail of some weeks, and a report arrives a day after the mail.
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
                <p class="soft small">
                  <HelpText text={requirement.message} />
                </p>
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
        <li key={`${note.code} ${note.message}`}>
          <HelpText text={note.message} />
        </li>
      ))}
    </ul>
  </Panel>
);

const STEP_TITLES: Readonly<Record<AdviceStep["action"], string>> = {
  fix_record: "Correct the record",
  publish_record: "Publish the record first",
  raise_parent: "Strengthen the policy of the parent domain",
  protect_missing_names: "Protect subdomains that do not exist",
  protect_subdomains: "Protect subdomains as well as the domain",
  rehearse_quarantine: "Rehearse quarantine",
  quarantine: "Go to p=quarantine",
  end_rehearsal: "End the rehearsal",
  reject: "Go to p=reject",
  reject_all: "Reject all mail from this domain",
  remove_pct: "Remove pct from the record",
  set_sends_mail: "Say whether this domain sends mail",
  fix_key: "Correct a DKIM key that signs mail now",
  classify_sources: "Say whether a sender is yours",
  fix_sources: "Set up a sender of yours",
  wait: "Wait for more reports",
};

/** The next step in a few words. */
const stepTitle = (advice: Pick<Advice, "next" | "stage" | "notes">): string => {
  const { next } = advice;
  return next === null
    ? conclusionOf(advice)
    : `Next step: ${STEP_TITLES[next.action].charAt(0).toLowerCase()}${STEP_TITLES[next.action].slice(1)}`;
};

const READY: ReadonlySet<AdviceStep["action"]> = new Set([
  "rehearse_quarantine",
  "quarantine",
  "end_rehearsal",
  "reject",
  "reject_all",
  "remove_pct",
  "protect_missing_names",
  "protect_subdomains",
]);

/** What kind of a conclusion the next step is. */
const stepKind = ({ next, notes }: Pick<Advice, "next" | "notes">): Kind => {
  if (next === null) return notes.some(({ code }) => code === "open_alerts") ? "warn" : "ok";
  if (READY.has(next.action)) return "ok";
  if (next.action === "fix_record" || next.action === "fix_key") return "bad";
  return next.action === "wait" ? "info" : "warn";
};

/** Why, for people at a page. */
const stepReason = ({ next, requirements }: Pick<Advice, "next" | "requirements">): string => {
  if (next === null) {
    const open = requirements.filter(({ met }) => !met).map(({ message }) => message);
    return open.length === 0 ? "All requirements are met." : open.join(" ");
  }
  return next.why;
};

/** What to do, in order; a page has buttons for classifying a source, and a form for what a domain sends. */
const stepList = ({ action, source, steps }: AdviceStep): readonly string[] =>
  (action === "classify_sources" && source !== null) || action === "set_sends_mail" ? [] : steps;

const REQUIREMENTS: Readonly<Record<AdviceRequirement["code"], string>> = {
  record_in_order: "The record is in order",
  keys_in_order: "DKIM keys with errors that sign mail now",
  reported_days: "Days with reports",
  reporters: "Reporters",
  messages: "Messages",
  aligned_share: "Mail of yours that passes, 30 days",
  recent_share: "Mail of yours that passes, last 7 days with reports",
  no_new_failures: "Senders that used to pass and fail now",
  unknown_sources: "Unclassified senders",
  few_forwarded: "Forwarded mail",
  no_aligned_mail: "Mail that passes, of a domain that sends none",
};

const requirementTitle = ({ code }: AdviceRequirement): string => REQUIREMENTS[code];

const SHARES: ReadonlySet<AdviceRequirement["code"]> = new Set(["aligned_share", "recent_share", "few_forwarded"]);
const AT_MOST: ReadonlySet<AdviceRequirement["code"]> = new Set([
  "few_forwarded",
  "keys_in_order",
  "no_new_failures",
  "unknown_sources",
  "no_aligned_mail",
]);
const VALUE_WORDS: Readonly<Record<string, string>> = {
  action_required: "action required",
  policy_invalid: "invalid policy",
};
const HUNDRED = 100;

const valueText = (code: AdviceRequirement["code"], value: string | number): string => {
  if (typeof value === "string") return VALUE_WORDS[value] ?? value.replaceAll("_", " ");
  return SHARES.has(code) ? `${Math.round(value * HUNDRED * HUNDRED) / HUNDRED} %` : value.toLocaleString("en-US");
};

/** The figures of a requirement: "6 of 14", "99.2 %, at least 99 %". */
const requirementFigures = ({ code, observed, expected, met }: AdviceRequirement): string => {
  const [is, needed] = [valueText(code, observed), valueText(code, expected)];
  if (typeof expected === "string") return is;
  if (AT_MOST.has(code)) return `${is}, ${expected === 0 ? "none allowed" : `below ${needed} needed`}`;
  return met || SHARES.has(code) ? `${is}, at least ${needed} needed` : `${is} of ${needed}`;
};
