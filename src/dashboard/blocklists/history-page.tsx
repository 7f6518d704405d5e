import { z } from "zod";
import type { CheckView } from "../../blocklist/check-result.ts";
import type { TargetRow } from "../../blocklist/store.ts";
import type { CheckPage } from "../../blocklist/target-history.ts";
import { Empty, PageHead, Panel } from "../components/panel.tsx";
import { Filters, SelectField } from "../components/form.tsx";
import { ButtonLink, DownloadLink, withParameters, Badge, type Kind } from "../components/inline.tsx";
import { Mono } from "../components/copy.tsx";
import { Pager, rowsParameter } from "../components/pager.tsx";
import { Table } from "../components/table.tsx";
import { Time, countText } from "../components/figures.tsx";
import { usePage } from "../visit.ts";

const PAGES_MAX = 10_000;

export const historyQuery = z.object({
  status: z.enum(["clean", "listed", "unknown"]).optional(),
  trigger: z.enum(["scheduled", "manual"]).optional(),
  changes: z.enum(["yes"]).optional(),
  cursor: z.coerce.number().int().min(1).max(PAGES_MAX).default(1),
  rows: rowsParameter,
});
export type HistoryQuery = z.output<typeof historyQuery>;

interface HistoryPageProps {
  readonly target: TargetRow;
  readonly query: HistoryQuery;
  readonly page: CheckPage;
  /** List or listing → name. */
  readonly names: ReadonlyMap<string, string>;
}

const STATUS_WORDS: Readonly<Record<CheckView["status"], readonly [Kind, string]>> = {
  clean: ["ok", "Clean"],
  listed: ["bad", "Listed"],
  unknown: ["unknown", "Unknown"],
  pending: ["info", "Pending"],
  running: ["info", "Running"],
};

/** Every check of a target. */
export const HistoryPage = (props: HistoryPageProps) => {
  const { target, query, page } = props;
  const path = `/blocklists/${target.id}/history`;
  const { url } = usePage();
  const parameters = withParameters(url, { cursor: null }).split("?")[1];
  return (
    <>
      <PageHead
        title={`Checks of ${target.value}`}
        crumbs={[
          ["Blocklists", "/blocklists"],
          [target.value, `/blocklists/${target.id}`],
        ]}
        meta="Checks are kept for 90 days or as the operator has set, those with a change for 400 days."
        actions={
          <DownloadLink href={`${path}.csv${parameters === undefined ? "" : `?${parameters}`}`}>CSV</DownloadLink>
        }
      />
      <Panel isFlush>
        <HistoryFilters path={path} query={query} />
        {page.checks.length === 0 ? (
          <Empty title="No check" action={<ButtonLink href={path}>Show all</ButtonLink>}>
            <p>
              {target.members === null
                ? "No check matches."
                : "A range has its changes here; each address has its own checks."}
            </p>
          </Empty>
        ) : (
          <Checks {...props} />
        )}
        <Pager
          next={query.cursor * query.rows < page.total ? String(query.cursor + 1) : null}
          shown={page.checks.length}
          first={(query.cursor - 1) * query.rows + 1}
          total={page.total}
          rows={query.rows}
        />
      </Panel>
    </>
  );
};

const HistoryFilters = ({ path, query }: { readonly path: string; readonly query: HistoryQuery }) => (
  <Filters action={path}>
    <SelectField
      name="changes"
      label="Which"
      value={query.changes ?? ""}
      options={[
        ["", "All checks"],
        ["yes", "With a change"],
      ]}
    />
    <SelectField
      name="status"
      label="Result"
      value={query.status ?? ""}
      options={[
        ["", "Any"],
        ["listed", "Listed"],
        ["unknown", "Unknown"],
        ["clean", "Clean"],
      ]}
    />
    <SelectField
      name="trigger"
      label="Begun"
      value={query.trigger ?? ""}
      options={[
        ["", "Any"],
        ["scheduled", "On schedule"],
        ["manual", "On request"],
      ]}
    />
  </Filters>
);

const Checks = ({ page: { checks }, names }: HistoryPageProps) => (
  <Table
    caption="Checks, the newest first"
    columns={[
      { title: "When" },
      { title: "Result" },
      { title: "Change" },
      { title: "Lists" },
      { title: "What they returned", isText: true },
    ]}
    rows={checks.map((check) => ({
      key: check.id,
      cells: [
        <CheckTime key="at" check={check} />,
        <Badge key="status" kind={STATUS_WORDS[check.status][0]}>
          {STATUS_WORDS[check.status][1]}
        </Badge>,
        <Change key="change" check={check} names={names} />,
        countsText(check),
        <Results key="results" check={check} names={names} />,
      ],
    }))}
  />
);

const CheckTime = ({ check }: { readonly check: CheckView }) => (
  <>
    <Time atMs={Date.parse(check.finished_at ?? check.started_at)} style="full" />
    {check.trigger === "manual" && <span class="second">on request</span>}
  </>
);

interface CheckProps {
  readonly check: CheckView;
  readonly names: ReadonlyMap<string, string>;
}

const Change = ({ check: { added, removed, address }, names }: CheckProps) => (
  <>
    {added.length > 0 && <span>listed on {added.map((id) => names.get(id) ?? id).join(", ")} </span>}
    {removed.length > 0 && <span>delisted from {removed.map((id) => names.get(id) ?? id).join(", ")} </span>}
    {address !== undefined && <span class="second mono">{address}</span>}
  </>
);

/** How many lists had which result, the interesting ones first. */
const countsText = ({ counts }: CheckView): string =>
  (
    [
      [counts.listed, "listed"],
      [counts.refused, "refused"],
      [counts.failed, "failed"],
      [counts.unproven, "unproven"],
      [counts.not_listed, "not listed"],
    ] as const
  )
    .flatMap(([count, word]) => (count === 0 ? [] : [`${count} ${word}`]))
    .join(" · ");

const Results = ({ check: { results }, names }: CheckProps) => {
  if (results.length === 0) return null;
  return (
    <details>
      <summary>{countText(results.length, "list")}</summary>
      <ul class="names small">
        {results.map(({ list, outcome, codes, text, reason, address }) => (
          <li key={`${list} ${address ?? ""}`}>
            <b>{names.get(list) ?? list}</b> {outcome === "not_listed" ? "not listed" : outcome}
            {address !== undefined && <span class="mono"> {address}</span>}
            {codes.length > 0 && (
              <>
                {" "}
                <Mono text={codes.join(", ")} />
              </>
            )}
            {text !== null && <span class="second">“{text}”</span>}
            {reason !== null && <span class="second">{reason}</span>}
          </li>
        ))}
      </ul>
    </details>
  );
};
