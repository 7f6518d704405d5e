import { z } from "zod";
import {
  auditChangeText,
  type AuditEntry,
  type AuditFilters,
  type AuditLog,
  auditView,
} from "../../accounts/audit-store.ts";
import { attachment } from "../../foundation/http/response.ts";
import { csvLine } from "../../foundation/http/csv.ts";
import { Copyable, Mono } from "../components/copy.tsx";
import { Empty, PageHead, Panel } from "../components/panel.tsx";
import { Field, Filters } from "../components/form.tsx";
import { DownloadLink, withParameters } from "../components/inline.tsx";
import { Pager, rowsParameter, firstRows } from "../components/pager.tsx";
import { Table, type TableRow } from "../components/table.tsx";
import { Time } from "../components/figures.tsx";
import { page } from "../page.ts";
import type { Viewer } from "../visit.ts";

export interface AuditUseCases {
  readonly audit: Pick<AuditLog, "list">;
  /** The addresses of users by their ids. */
  readonly userEmails: () => ReadonlyMap<string, string>;
  /** The names of keys of an account by their ids. */
  readonly keyNames: (accountId: string) => ReadonlyMap<string, string>;
}

const PATH = "/settings/audit";
const CSV_ROWS_MAX = 10_000;
const USER = /^user (.+)$/;
const KEY = /^key (.+)$/;

const query = z.object({
  since: z.iso.date().optional(),
  action: z.string().max(60).default(""),
  cursor: z.coerce.number().int().positive().optional(),
  rows: rowsParameter,
});

/** Who changed what in the account. */
export const createAuditPages = ({ audit, userEmails, keyNames }: AuditUseCases) => {
  const actorReader = (accountId: string) => {
    const [emails, keys] = [userEmails(), keyNames(accountId)];
    return ({ user }: AuditEntry): string => {
      const keyId = KEY.exec(user)?.[1];
      if (keyId !== undefined) return `key ${keys.get(keyId) ?? keyId}`;
      const id = USER.exec(user)?.[1];
      return id === undefined ? user : (emails.get(id) ?? "a user who was removed");
    };
  };
  const filtersOf = (viewer: Viewer, { since, action }: z.output<typeof query>): AuditFilters => ({
    accountId: viewer.account.id,
    actionBegin: action,
    sinceMs: since === undefined ? undefined : Date.parse(since),
  });
  return [
    page({ path: PATH, query }, ({ viewer, query: given }) => {
      const actorOf = actorReader(viewer.account.id);
      const limits = { before: given.cursor ?? null, limit: given.rows + 1 };
      const found = audit.list(filtersOf(viewer, given), limits);
      const { rows, next } = firstRows(found, given.rows, ({ id }) => String(id));
      const names = new Map([...userEmails(), ...keyNames(viewer.account.id)]);
      const shown = {
        ...given,
        limit: given.rows,
        rows: rows.map((entry) => rowOf(entry, actorOf(entry), names)),
        next,
      };
      return { title: "Audit log", section: "settings", body: <AuditPage {...shown} /> };
    }),
    page({ path: `${PATH}.csv`, query }, ({ viewer, query: given }) => {
      const actorOf = actorReader(viewer.account.id);
      const entries = audit.list(filtersOf(viewer, given), { before: null, limit: CSV_ROWS_MAX });
      const lines = entries.map((entry) => {
        const { at, action, subject, before, after } = auditView(entry);
        return csvLine([at, actorOf(entry), action, subject, auditChangeText({ before, after })]);
      });
      const head = csvLine(["at", "who", "action", "subject", "change"]);
      const headers = { "content-type": "text/csv; charset=utf-8", "content-disposition": attachment("audit", ".csv") };
      return new Response([head, ...lines].join(""), { headers });
    }),
  ];
};

const rowOf = (entry: AuditEntry, actor: string, names: ReadonlyMap<string, string>): TableRow => {
  const { id, action, subject, before, after } = auditView(entry);
  return {
    key: id,
    cells: [
      <Time atMs={entry.atMs} style="full" />,
      actor,
      <Mono text={action} />,
      subject === null ? "" : (names.get(subject) ?? <Copyable text={subject} />),
      auditChangeText({ before, after }),
    ],
  };
};

interface PageProps {
  readonly rows: readonly TableRow[];
  readonly next: string | null;
  readonly since?: string | undefined;
  readonly action: string;
  readonly limit: number;
}

const AuditPage = ({ rows, next, since = "", action, limit }: PageProps) => (
  <>
    <PageHead
      title="Audit log"
      meta="Who changed the account, its keys, users and settings. Entries cannot be changed or removed."
      actions={
        <DownloadLink href={withParameters(`${PATH}.csv`, { since: since || null, action: action || null })}>
          CSV
        </DownloadLink>
      }
    />
    <Panel isFlush>
      <Filters action={PATH}>
        <Field name="since" label="Since" type="date" value={since} />
        <Field name="action" label="Action begins with" value={action} placeholder="keys" />
      </Filters>
      {rows.length === 0 ? (
        <Empty title="No entries">
          <p>What is done in the dashboard and by the operator's commands appears here.</p>
        </Empty>
      ) : (
        <Table
          caption="Entries of the audit log"
          columns={[
            { title: "When" },
            { title: "Who" },
            { title: "Action" },
            { title: "Subject" },
            { title: "Change", isText: true },
          ]}
          rows={rows}
        />
      )}
      <Pager next={next} shown={rows.length} rows={limit} />
    </Panel>
  </>
);
