import { z } from "zod";
import { AppError } from "../../foundation/base/errors.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import type { ApiKey } from "../../accounts/store.ts";
import type { Guard } from "../../foundation/http/guard.ts";
import { attachment, sendJson, streamRows } from "../../foundation/http/response.ts";
import { idParameter } from "../../foundation/http/route-input.ts";
import type { Bounces } from "../../verify/bounces/bounces.ts";
import type { Checks } from "../../verify/checks.ts";
import type { Evidence } from "../../verify/evidence.ts";
import type { History } from "../../verify/history.ts";
import { cached } from "../../foundation/base/bounded-map.ts";
import { resultSchema, SUB_STATUSES, VERDICTS } from "../../verify/result.ts";
import type { VerificationRow } from "../../verify/store.ts";
import { readAddressCell } from "../../foundation/mail/address-in-cell.ts";
import { formAction, page } from "../page.ts";
import { usePage, type View, type Viewer, type Flash, isOwnPath, redirectTo, redirectToPath } from "../visit.ts";
import { createBouncePages } from "./bounce-pages.tsx";
import { VerificationBody } from "./verification-body.tsx";
import type { HistoryFilters } from "../../verify/history-store.ts";
import { isId } from "../../foundation/base/secrets.ts";
import { Mono } from "../components/copy.tsx";
import { Empty, PageHead, Panel } from "../components/panel.tsx";
import { Field, Filters, SelectField } from "../components/form.tsx";
import { ResultBadge, VerifyBox, wordsOfReason, wordsOfVerdict } from "../components/verification.tsx";
import type { RowMenuProps } from "../components/row-menu.tsx";
import { ButtonLink, DownloadLink, Link, withPath } from "../components/inline.tsx";
import { countedTotal, TOTAL_MAX, Pager, rowsParameter } from "../components/pager.tsx";
import { Table } from "../components/table.tsx";
import { Time } from "../components/figures.tsx";

export interface VerifyPageUseCases {
  readonly checks: Checks;
  readonly history: History;
  readonly bounces: Bounces;
  readonly guard: Guard;
  readonly clock: Clock;
  /** The API keys of an account, for the filter. */
  readonly keysOf: (accountId: string) => readonly ApiKey[];
  readonly nameOf: (keyId: string) => string | null;
}

/** How long a form waits for a result before it leads to the page that waits for it. */
const WAIT_MS = 300;
const EMAIL_CHARACTERS_MAX = 1_000;

const idOnly = z.object({ id: idParameter("verification") });
const addressForm = z.object({ email: z.string().trim().min(1, "Enter an email address").max(EMAIL_CHARACTERS_MAX) });

/** The address in a text that was typed, as a list reads a cell, and what to say when more stood around it. */
const readAddress = (typed: string): { readonly email: string; readonly note?: Flash } => {
  const read = readAddressCell(typed);
  if (!read.ok || read.value.text === typed) return { email: typed };
  const { text } = read.value;
  return { email: text, note: { ok: `“${typed}” is read as ${text}.` } };
};

/** Verification of one address, its evidence, and the history. */
export const createVerifyPages = (useCases: VerifyPageUseCases) => [
  ...historyPages(useCases),
  ...createBouncePages(useCases),
  formAction(
    { path: "/verify", form: addressForm },
    async ({ viewer, form, request }) => {
      useCases.guard.limitUser(viewer.caller);
      const { email, note } = readAddress(form.email);
      const order = { email, source: null, idempotencyKey: null };
      const row = await useCases.checks.request(viewer.caller, order, WAIT_MS, request.signal);
      return redirectTo(viewer, `/verify/${row.id}`, note);
    },
    { rerender: ({ viewer }) => historyView(useCases, viewer, verificationsQuery.parse({})) },
  ),
  page({ path: "/verify/:id", params: idOnly }, ({ viewer, params }) => checkView(useCases, viewer, params.id)),
  page({ path: "/verify/:id/json", params: idOnly }, async ({ request, viewer, params }) => {
    const row = await find(useCases, viewer, params.id);
    const result = row.result === null ? null : resultSchema.parse(JSON.parse(row.result));
    const evidence = await findEvidence(useCases, viewer, params.id);
    return sendJson(request, { id: row.id, status: row.status, result, evidence });
  }),
  formAction(
    { path: "/verify/:id/delete", params: idOnly, form: z.object({ back: z.string().default("") }) },
    async ({ viewer, params, form: { back } }) => {
      await useCases.checks.remove(viewer.caller, params.id);
      const history = viewer.href("/verify");
      const isHistory = isOwnPath(back) && back.split("?")[0] === history;
      return redirectToPath(isHistory ? back : history, { ok: "The verification and its evidence are deleted." });
    },
  ),
];

const historyPages = (useCases: VerifyPageUseCases) => [
  page({ path: "/verify", query: verificationsQuery }, ({ viewer, query }) => historyView(useCases, viewer, query)),
  page({ path: "/verify.csv", query: verificationsQuery }, ({ request, viewer, query }) => {
    const rows = useCases.history.csv(viewer.caller, filtersOf(query, viewer), (id) => useCases.nameOf(id));
    return streamRows(request, rows, {
      "content-type": "text/csv; charset=utf-8",
      "content-disposition": attachment("verifications", ".csv"),
    });
  }),
];

const historyView = async (
  { history, keysOf, nameOf }: VerifyPageUseCases,
  viewer: Viewer,
  query: z.output<typeof verificationsQuery>,
): Promise<View> => {
  const window = { before: query.cursor ?? null, limit: query.rows };
  const { rows, next } = await history.page(viewer.caller, filtersOf(query, viewer), window);
  const counted = history.count(viewer.caller, filtersOf(query, viewer), TOTAL_MAX + 1);
  const total = counted === null ? undefined : countedTotal(counted);
  const keys = keysOf(viewer.account.id).filter(({ mode }) => mode === viewer.mode);
  return {
    title: "Verify",
    section: "verify",
    body: <VerificationsBody {...{ rows, next, total, query, keys }} nameOf={cached(query.rows, nameOf)} />,
  };
};

const find = ({ checks }: VerifyPageUseCases, { caller }: Viewer, id: string): Promise<VerificationRow> =>
  checks.poll(caller, id, 0);

/** The evidence; null when it has expired. */
const findEvidence = async (
  { checks }: VerifyPageUseCases,
  { caller }: Viewer,
  id: string,
): Promise<Evidence | null> => {
  try {
    return await checks.evidence(caller, id);
  } catch (error) {
    if (error instanceof AppError && error.code === "not_found") return null;
    throw error;
  }
};

const checkView = async (useCases: VerifyPageUseCases, viewer: Viewer, id: string): Promise<View> => {
  const row = await find(useCases, viewer, id);
  const evidence = await findEvidence(useCases, viewer, id);
  return {
    title: row.email,
    section: "verify",
    body: (
      <VerificationBody row={row} evidence={evidence} by={useCases.nameOf(row.keyId)} account={viewer.account.name} />
    ),
  };
};

/** The filters of the history, as in its URL. */
const verificationsQuery = z.object({
  verdict: z.enum(VERDICTS).optional(),
  sub_status: z.enum(SUB_STATUSES).optional(),
  status: z.enum(["pending", "completed"]).optional(),
  key: z.string().max(100).optional(),
  from: z.iso.date().optional(),
  to: z.iso.date().optional(),
  q: z.string().trim().max(200).optional(),
  cursor: z.string().refine(isId).optional(),
  rows: rowsParameter,
});

type Query = z.output<typeof verificationsQuery>;

/** The filters of a query; its days are those of the viewer's zone. */
const filtersOf = (query: Query, { timeZone }: Pick<Viewer, "timeZone">): HistoryFilters => ({
  verdict: query.verdict,
  subStatus: query.sub_status,
  status: query.status,
  keyId: query.key,
  text: query.q,
  fromMs: query.from === undefined ? undefined : localMidnight(query.from, 0, timeZone),
  beforeMs: query.to === undefined ? undefined : localMidnight(query.to, 1, timeZone),
});

interface VerificationsBodyProps {
  readonly rows: readonly VerificationRow[];
  readonly next: string | null;
  readonly total: number | "many" | undefined;
  readonly query: Query;
  readonly keys: readonly ApiKey[];
  readonly nameOf: (keyId: string) => string | null;
}

/** The box, and below it everything that was verified one by one. */
const VerificationsBody = (props: VerificationsBodyProps) => {
  const { rows, next, total, query } = props;
  const { url } = usePage();
  const isFiltered = Object.entries(query).some(([name, value]) => name !== "rows" && value !== undefined);
  return (
    <>
      <PageHead title="Verify" actions={<ButtonLink href="/verify/bounces">Bounces</ButtonLink>} />
      <Panel title="Verify an address">
        <VerifyBox />
      </Panel>
      <Panel title="History" aside={<DownloadLink href={withPath(url, "/verify.csv")}>CSV</DownloadLink>} isFlush>
        {(isFiltered || rows.length > 0) && <HistoryFilterForm {...props} />}
        {rows.length === 0 ? <NoRows isFiltered={isFiltered} hasMore={next !== null} /> : <HistoryTable {...props} />}
        <Pager next={next} shown={rows.length} total={total} rows={query.rows} />
      </Panel>
    </>
  );
};

const any = (text: string): readonly [string, string] => ["", text];

const HistoryFilterForm = ({ query, keys }: VerificationsBodyProps) => (
  <Filters action="/verify">
    <Field name="q" label="Address contains" type="search" value={query.q ?? ""} />
    <SelectField
      name="verdict"
      label="Verdict"
      value={query.verdict ?? ""}
      options={[any("Every verdict"), ...VERDICTS.map((verdict) => [verdict, wordsOfVerdict(verdict).label] as const)]}
    />
    <SelectField
      name="sub_status"
      label="Reason"
      value={query.sub_status ?? ""}
      options={[any("Every reason"), ...SUB_STATUSES.map((reason) => [reason, wordsOfReason(reason).label] as const)]}
    />
    <SelectField
      name="key"
      label="Key"
      value={query.key ?? ""}
      options={[any("Everyone"), ...keys.map(({ id, name }) => [id, name] as const)]}
    />
    <Field name="from" label="From" type="date" value={query.from ?? ""} />
    <Field name="to" label="To" type="date" value={query.to ?? ""} />
  </Filters>
);

const NoRows = ({ isFiltered, hasMore }: { readonly isFiltered: boolean; readonly hasMore: boolean }) =>
  isFiltered ? (
    <Empty
      title={hasMore ? "Nothing so far" : "Nothing matches"}
      action={<Link href="/verify">Remove the filters</Link>}
    >
      <p>
        {hasMore
          ? "None of the newest verifications match. Older ones are on the next page."
          : "No verification matches these filters."}
      </p>
    </Empty>
  ) : (
    <Empty title="Nothing verified yet">
      <p>
        Enter an address above. You see its verdict, and everything that it rests on: the DNS responses, what the mail
        server said, and the line that decided. Addresses of lists are on the page of their list.
      </p>
    </Empty>
  );

const menuOf = ({ id, email, status }: VerificationRow, back: string): RowMenuProps => ({
  about: email,
  copy: { text: email, label: "Copy the address" },
  acts: [
    { text: "Verify again", icon: "refresh-cw", action: "/verify", field: ["email", email] },
    ...(status === "completed"
      ? [
          {
            text: "Delete",
            icon: "trash-2",
            action: `/verify/${id}/delete`,
            field: ["back", back],
            isFinal: true,
          } as const,
        ]
      : []),
  ],
});

const qualitySchema = resultSchema.pick({ quality_score: true });

const HistoryTable = ({ rows, nameOf }: VerificationsBodyProps) => {
  const { url } = usePage();
  return (
    <Table
      caption="Verifications, the newest first"
      columns={[
        { title: "Address", isMain: true },
        { title: "Result" },
        { title: "Quality", align: "end" },
        { title: "Requested by" },
        { title: "When", align: "end" },
      ]}
      rows={rows.map((row) => ({
        key: row.id,
        cells: [
          <Link href={`/verify/${row.id}`}>
            <Mono text={row.email} />
          </Link>,
          <ResultBadge row={row} />,
          row.result === null ? "–" : qualitySchema.parse(JSON.parse(row.result)).quality_score,
          nameOf(row.keyId) ?? "–",
          <Time atMs={row.createdAtMs} />,
        ],
        menu: menuOf(row, url),
      }))}
    />
  );
};

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** By how many milliseconds a zone is ahead of UTC at a time. */
const offsetMs = (atMs: number, timeZone: string): number => {
  const parts = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  }).formatToParts(atMs);
  const numberOf = (type: string) => Number(parts.find((part) => part.type === type)?.value ?? 0);
  const shown = Date.UTC(
    ...([numberOf("year"), numberOf("month") - 1, numberOf("day"), numberOf("hour"), numberOf("minute")] as const),
    numberOf("second"),
  );
  return shown - Math.floor(atMs / 1_000) * 1_000;
};

/** When the day that comes `days` days after `day` (`YYYY-MM-DD`) begins in a zone, in milliseconds since 1970. */
export const localMidnight = (day: string, days: number, timeZone: string): number => {
  const utcMs = Date.parse(`${day}T00:00:00Z`) + days * DAY_MS;
  const firstGuess = utcMs - offsetMs(utcMs, timeZone);
  // The offset at the guess decides: it differs where the clocks change in between.
  return utcMs - offsetMs(firstGuess, timeZone);
};
