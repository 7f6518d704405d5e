import { z } from "zod";
import { DAY_MS } from "../../foundation/base/days.ts";
import { isId } from "../../foundation/base/secrets.ts";
import type { Publication } from "../../dmarc/records/domains/publication.ts";
import type { DomainRow, HistoryRow } from "../../dmarc/records/domains/domain-store.ts";
import { Badge } from "../components/inline.tsx";
import { CopyBlock } from "../components/copy.tsx";
import { Button, PostForm } from "../components/form.tsx";
import { Callout, Columns, Panel } from "../components/panel.tsx";
import { formatted, exactText, Time } from "../components/figures.tsx";
import { formAction, page, type PageRoute } from "../page.ts";
import { type Viewer, redirectTo } from "../visit.ts";
import { DomainHead } from "./domain-head.tsx";
import {
  checkedSentence,
  publicationReason,
  publicationWords,
  publishText,
  waitsUntilMs,
  changeWords,
  PublishRecord,
  RecordDiff,
  TagChanges,
} from "./record-text.tsx";
import { MtaStsPanel } from "./mta-sts.tsx";
import type { DmarcReportUseCases } from "./use-cases.ts";
import { historyView } from "../../dmarc/records/domains/domains.ts";
import { Pager, firstRows } from "../components/pager.tsx";

const params = z.object({ id: z.string() });
const PATH = "/dmarc/:id/record";

type UseCases = Pick<DmarcReportUseCases, "clock" | "domains" | "hosting">;

/** The record of a domain: what to publish, what is published, and its history. */
export const recordPages = (useCases: UseCases): readonly PageRoute[] => [
  page(
    { path: PATH, params, query: z.object({ cursor: z.string().refine(isId) }).partial() },
    ({ viewer, params: { id }, query }) => {
      const { domains, clock, hosting } = useCases;
      const domain = domains.find(viewer.caller, id);
      const publication = domains.publication(domain);
      const before = query.cursor ?? null;
      const rows = domains.history(viewer.caller, id, { before, limit: HISTORY_ROWS + 1 });
      const services = domains.serviceRecords(domain);
      return {
        title: `Record of ${domain.domain}`,
        section: "dmarc",
        body: (
          <>
            <DomainHead
              domain={domain}
              current="record"
              title={`DMARC record of ${domain.domain}`}
              meta={<CheckedAt {...publication} />}
            />
            <Conclusion domain={domain} publication={publication} nowMs={clock.nowMs()} />
            <Columns side={<Side publication={publication} services={services} />}>
              <ToPublish domain={domain} publication={publication} />
              <Published publication={publication} />
              <MtaStsPanel domain={domain} view={hosting.view(viewer.caller, id)} />
            </Columns>
            <RecordHistory rows={rows} />
          </>
        ),
      };
    },
  ),

  formAction({ path: `${PATH}/check`, params }, async ({ viewer, params: { id } }) => {
    const { domains, clock, hosting } = useCases;
    const before = domains.publication(domains.find(viewer.caller, id));
    const [checked] = await Promise.all([domains.verify(viewer.caller, id), hosting.check(viewer.caller, id)]);
    const after = domains.publication(checked.domain);
    const untilMs = waitsUntilMs(after, clock.nowMs());
    const sentence = checkedSentence(
      before,
      after,
      untilMs === null ? null : untilText(untilMs, clock.nowMs(), viewer),
    );
    return redirectTo(viewer, `/dmarc/${id}/record`, after.state === "in_order" ? { ok: sentence } : { bad: sentence });
  }),
];

/** A time of the next hours, in the viewer's zone: "22:17 UTC"; a later one with its date. */
const untilText = (atMs: number, nowMs: number, { timeZone }: Pick<Viewer, "timeZone">): string =>
  atMs - nowMs >= DAY_MS
    ? exactText(atMs, timeZone)
    : formatted(atMs, timeZone, { hour: "2-digit", minute: "2-digit", hour12: false, timeZoneName: "short" });

const CheckedAt = ({ checkedAtMs }: Publication) =>
  checkedAtMs === null ? (
    <>not checked yet</>
  ) : (
    <span>
      DNS checked <Time atMs={checkedAtMs} />
    </span>
  );

interface ConclusionProps {
  readonly domain: DomainRow;
  readonly publication: Publication;
  readonly nowMs: number;
}

const Conclusion = ({ domain, publication, nowMs }: ConclusionProps) => {
  const { kind, label, title } = publicationWords(publication);
  const isDone = publication.state === "in_order";
  const untilMs = waitsUntilMs(publication, nowMs);
  return (
    <Callout
      {...{ kind, label, title }}
      actions={
        <PostForm action={`/dmarc/${domain.id}/record/check`}>
          <Button kind={isDone ? "plain" : "main"} icon="refresh-cw">
            {isDone ? "Check now" : "I published it, check now"}
          </Button>
        </PostForm>
      }
    >
      <p>{publicationReason(publication)}</p>
      {untilMs !== null && (
        <p>
          If you have just published it: resolvers may keep the old answer until <Time atMs={untilMs} style="full" />.
          The record is checked again by itself within the hour.
        </p>
      )}
    </Callout>
  );
};

const ToPublish = ({ domain, publication }: { readonly domain: DomainRow; readonly publication: Publication }) => {
  const { advised, host } = publication;
  if (advised === null || advised.value === "") {
    return (
      <Panel title="What to publish">
        <p class="soft">
          {advised === null
            ? "This is not known before the DNS is checked: a record that exists is never replaced, only your reporting address is added to it."
            : advised.message}
        </p>
        {publication.reportingAddress !== null && (
          <>
            <p class="label">Your reporting address, for the rua tag</p>
            <CopyBlock text={`mailto:${publication.reportingAddress}`} label="Reporting address" />
          </>
        )}
      </Panel>
    );
  }
  const { value, strings, action: step, warnings, current } = advised;
  if (step === "none" && current === value) return null;
  return (
    <Panel title="What to publish" aside={step === "update" ? "replaces the present record" : undefined}>
      <p>{publishText(advised)}</p>
      <PublishRecord {...{ host, domain: domain.domain, value, strings }} />
      {current !== null && current !== value && !current.includes("\n") && (
        <>
          <p class="label">What changes</p>
          <RecordDiff before={current} after={value} />
          <TagChanges before={current} after={value} />
        </>
      )}
      {warnings.length > 0 && <Warnings warnings={warnings} />}
    </Panel>
  );
};

const Warnings = ({ warnings }: Pick<NonNullable<Publication["advised"]>, "warnings">) => (
  <>
    <p class="label">Worth a look</p>
    <ul class="notes">
      {warnings.map(({ code, message }) => (
        <li key={`${code} ${message}`}>
          <Badge kind="warn">Warning</Badge> {message}
        </li>
      ))}
    </ul>
  </>
);

const Published = ({ publication: { advised, host, checks } }: { readonly publication: Publication }) => {
  const observed = checks.find(({ code }) => code === "record");
  const texts = (advised?.current ?? observed?.observed ?? "").split("\n").filter((text) => text !== "");
  return (
    <Panel title="What is published now" aside={<span class="mono">{host}</span>}>
      {texts.length === 0 ? (
        <p class="soft">{observed === undefined || observed.ok === null ? "Not known." : "No DMARC record."}</p>
      ) : (
        texts.map((text) => <CopyBlock key={text} text={text} label="Published record" />)
      )}
      {advised !== null && advised.action === "none" && advised.warnings.length > 0 && (
        <Warnings warnings={advised.warnings} />
      )}
    </Panel>
  );
};

interface SideProps {
  readonly publication: Publication;
  readonly services: ReturnType<UseCases["domains"]["serviceRecords"]>;
}

const CHECK_TITLES = {
  record: "One valid record",
  reporting_address: "Your reporting address in it",
  authorisation: "Receivers may report here",
} as const;

const Side = ({ publication: { checks }, services }: SideProps) => {
  const isUnauthorised = checks.some(({ code, ok }) => code === "authorisation" && ok === false);
  return (
    <>
      <Panel title="What was checked" isFlush>
        {checks.length === 0 ? (
          <p class="panel-body soft">Nothing yet.</p>
        ) : (
          <ul class="checklist narrow">
            {checks.map(({ code, ok, message }) => (
              <li key={code}>
                <Badge kind={ok === true ? "ok" : ok === false ? "bad" : "unknown"}>
                  {ok === true ? "Yes" : ok === false ? "No" : "Not known"}
                </Badge>
                <div>
                  <b>{CHECK_TITLES[code]}</b>
                  <p class="soft small">{message}</p>
                </div>
              </li>
            ))}
          </ul>
        )}
      </Panel>
      {isUnauthorised && services.length > 0 && (
        <Panel title="For the operator of this service">
          <p class="soft small">
            These records are published once for the report host; they are valid for all domains.
          </p>
          {services.map(({ host, type, value, purpose }) => (
            <div key={host} class="publish">
              <p class="label">
                {type} at <span class="mono">{host}</span>
              </p>
              <CopyBlock text={value} label={`${type} record of ${host}`} />
              <p class="soft small">{purpose}</p>
            </div>
          ))}
        </Panel>
      )}
    </>
  );
};

/** Entries of a page of the history. */
const HISTORY_ROWS = 20;

const TRIGGERS = { enrolled: "when it was enrolled", scheduled: "scheduled check", manual: "check by a user" } as const;
const STATUSES = { pending: "pending", active: "active", action_required: "action required" } as const;

/** The history of a record: when it changed, and how. One row more than a page holds tells that there is a next one. */
const RecordHistory = ({ rows }: { readonly rows: readonly HistoryRow[] }) => {
  const { rows: shown, next } = firstRows(rows, HISTORY_ROWS, ({ id }) => id);
  return (
    <Panel title="History" isFlush>
      {shown.length === 0 ? (
        <p class="panel-body soft">Nothing was found yet. Each change of the record is noted here with its date.</p>
      ) : (
        <ol class="history">
          {shown.map((row, at) => (
            <Entry key={row.id} row={row} older={rows[at + 1]} />
          ))}
        </ol>
      )}
      <Pager next={next} shown={shown.length} />
    </Panel>
  );
};

const Entry = ({ row, older }: { readonly row: HistoryRow; readonly older: HistoryRow | undefined }) => {
  const { trigger, changes, status, previous_status, record } = historyView(row);
  const before = older === undefined ? null : historyView(older).record;
  return (
    <li>
      <div>
        <Time atMs={row.atMs} style="full" />
        <span class="second">{TRIGGERS[trigger]}</span>
      </div>
      <div>
        <b>{changeWords(changes)}</b>
        {status !== previous_status && (
          <span class="soft">
            {" "}
            · status {STATUSES[previous_status]} → {STATUSES[status]}
          </span>
        )}
        {record === null ? (
          <p class="soft small">No single record was published.</p>
        ) : before === null || before === record ? (
          <p class="record-diff mono">{record}</p>
        ) : (
          <RecordDiff before={before} after={record} />
        )}
      </div>
    </li>
  );
};
