import { z } from "zod";
import { AppError } from "../../foundation/base/errors.ts";
import { attachment } from "../../foundation/http/response.ts";
import { csvLine } from "../../foundation/http/csv.ts";
import type { Suppression, Suppressions } from "../../accounts/suppress/store.ts";
import { Mono } from "../components/copy.tsx";
import { Empty, Columns, PageHead, Panel } from "../components/panel.tsx";
import { Button, CheckField, Field, Filters, PostForm, TextAreaField } from "../components/form.tsx";
import { DownloadLink } from "../components/inline.tsx";
import { Pager, rowsParameter, firstRows } from "../components/pager.tsx";
import { Table } from "../components/table.tsx";
import { Time, countText } from "../components/figures.tsx";
import { formAction, page, listOf, optionalText } from "../page.ts";
import { type View, redirectTo } from "../visit.ts";

export interface SuppressionUseCases {
  readonly suppressions: Suppressions;
}

const PATH = "/settings/suppressions";
const CSV_ROWS = 1_000;
const ENTRIES_MAX = 20_000;
const PROBLEMS_SHOWN_MAX = 5;
const REMOVE_FORM = "remove-suppressions";

const query = z.object({
  q: z.string().max(320).default(""),
  cursor: z.string().max(320).default(""),
  rows: rowsParameter,
});
type Query = z.output<typeof query>;

/** The operator's list of addresses and domains that are never probed. */
export const createSuppressionPages = ({ suppressions }: SuppressionUseCases) => {
  const view = ({ q, cursor, rows }: Query): View => {
    const found = suppressions.search({ text: q, after: cursor, limit: rows + 1 });
    return {
      title: "Suppression list",
      section: "settings",
      body: <SuppressionPage {...{ found, q, rows }} count={suppressions.count()} />,
    };
  };
  return [
    page({ path: PATH, query }, (input) => view(input.query)),
    page({ path: `${PATH}.csv` }, () => csvOf(suppressions)),
    formAction(
      {
        path: PATH,
        form: z.object({
          entries: z.string().trim().min(1, "Paste at least one address or domain"),
          note: optionalText(200),
        }),
      },
      ({ viewer, form, done }) => {
        const entries = form.entries.split(/[\s,;]+/).filter((part) => part !== "");
        done.after = { entries: entries.length };
        const added =
          entries.length > ENTRIES_MAX ? refuse([`At most ${ENTRIES_MAX} at once.`]) : addAll(entries, form.note);
        const known =
          added.known === 0 ? "" : ` ${countText(added.known, "entry was", "entries were")} on the list already.`;
        return redirectTo(viewer, PATH, { ok: `Added ${countText(added.added, "entry", "entries")}.${known}` });
      },
      { rerender: () => view(query.parse({})) },
    ),
    formAction({ path: `${PATH}/remove`, form: z.object({ entry: listOf(z.string()) }) }, ({ viewer, form, done }) => {
      done.after = { entries: form.entry.length };
      if (form.entry.length === 0) return redirectTo(viewer, PATH, { bad: "Tick the entries to remove first." });
      const removed = suppressions.remove(form.entry).length;
      return redirectTo(viewer, PATH, { ok: `Removed ${countText(removed, "entry", "entries")}.` });
    }),
  ];

  function addAll(entries: readonly string[], note: string | null) {
    const added = suppressions.add(entries, note);
    return added.ok ? added.value : refuse(added.error);
  }
};

const refuse = (problems: readonly string[]): never => {
  const more = problems.length - PROBLEMS_SHOWN_MAX;
  const shown = [...problems.slice(0, PROBLEMS_SHOWN_MAX), ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
  throw new AppError("Invalid request body", {
    message: "Nothing was added",
    issues: [{ path: "entries", message: shown }],
  });
};

/** The whole list, read page by page while the client reads it. */
const csvOf = (suppressions: Suppressions): Response => {
  let after = "";
  const encoder = new TextEncoder();
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(encoder.encode(csvLine(["entry", "note", "added_at"]))),
    pull(controller) {
      const rows = suppressions.search({ text: "", after, limit: CSV_ROWS });
      const lines = rows.map(({ entry, note, createdAtMs }) =>
        csvLine([entry, note, new Date(createdAtMs).toISOString()]),
      );
      controller.enqueue(encoder.encode(lines.join("")));
      after = rows.at(-1)?.entry ?? "";
      if (rows.length < CSV_ROWS) controller.close();
    },
  });
  const headers = {
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": attachment("suppressions", ".csv"),
  };
  return new Response(body, { headers });
};

interface PageProps {
  /** One more than is shown, if there are more. */
  readonly found: readonly Suppression[];
  readonly q: string;
  readonly rows: number;
  readonly count: number;
}

const SuppressionPage = (props: PageProps) => (
  <>
    <PageHead
      title="Suppression list"
      meta="Addresses and domains that must not be mailed. Verifications report them as risky, with the reason toxic. Nothing is removed from lists."
      actions={props.count > 0 && <DownloadLink href={`${PATH}.csv`}>CSV</DownloadLink>}
    />
    <Columns side={<AddForm />}>
      <Entries {...props} />
    </Columns>
  </>
);

const Entries = ({ found, q, rows, count }: PageProps) => {
  const { rows: shown, next } = firstRows(found, rows, ({ entry }) => entry);
  if (count === 0)
    return (
      <Panel title="Entries">
        <Empty title="The list is empty">
          <p>
            Add people who complained, spam traps and domains you must not write to. A domain stands for all addresses
            below it.
          </p>
        </Empty>
      </Panel>
    );
  return (
    <Panel title={countText(count, "entry", "entries")} isFlush>
      <Filters action={PATH}>
        <Field name="q" label="Contains" type="search" value={q} />
      </Filters>
      {shown.length === 0 ? (
        <Empty title="No entry contains this">
          <p>Erased addresses are stored as a hash: search for the whole address.</p>
        </Empty>
      ) : (
        <Table
          caption="Entries of the suppression list"
          columns={[
            { title: "Remove", isTitleHidden: true },
            { title: "Entry", isMain: true },
            { title: "Note", isText: true },
            { title: "Added" },
          ]}
          rows={shown.map(({ entry, note, createdAtMs }) => ({
            key: entry,
            cells: [
              <CheckField name="entry" value={entry} label={`Remove ${entry}`} isLabelHidden form={REMOVE_FORM} />,
              <Mono text={entry} />,
              note ?? "",
              <Time atMs={createdAtMs} />,
            ],
          }))}
        />
      )}
      <Pager next={next} shown={shown.length} total={q === "" ? count : undefined} rows={rows}>
        <PostForm action={`${PATH}/remove`} id={REMOVE_FORM}>
          <Button kind="danger" icon="trash-2">
            Remove ticked
          </Button>
        </PostForm>
      </Pager>
    </Panel>
  );
};

const AddForm = () => (
  <Panel title="Add">
    <PostForm action={PATH} class="form">
      <TextAreaField
        name="entries"
        label="Addresses and domains"
        rows={6}
        isMono
        placeholder={"someone@example.com\nexample.org"}
        hint="One a line, or separated by commas."
      />
      <Field name="note" label="Note" hint="Reason (visible to other operators)." />
      <Button kind="main" icon="plus">
        Add
      </Button>
    </PostForm>
  </Panel>
);
