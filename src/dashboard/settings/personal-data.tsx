import { z } from "zod";
import { AppError } from "../../foundation/base/errors.ts";
import { isoDay, dayOfTime } from "../../foundation/base/days.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import { attachment, streamRows } from "../../foundation/http/response.ts";
import { Button, CheckField, Field, PostForm } from "../components/form.tsx";
import { Badge } from "../components/inline.tsx";
import { countText, numberText, Time } from "../components/figures.tsx";
import { Callout, Columns, Live, PageHead, Panel, Row, Rows } from "../components/panel.tsx";
import { flag, formAction, page } from "../page.ts";
import { redirectTo, usePage, type View, type Viewer } from "../visit.ts";

/** An account, an address in it, or (without an account) an address in all. */
interface Subject {
  readonly accountId: string | null;
  readonly address: string | null;
}

/** Rows with an address by table, and the number of lists among them. */
interface Traces {
  readonly tables: Readonly<Record<string, number>>;
  readonly lists: number;
}

/** How the last erasure ended. */
type Ended = { readonly atMs: number } & (
  | {
      readonly run: {
        readonly erased: { readonly verifications: number; readonly listRows: number; readonly reportMails: number };
        readonly leftovers: { readonly problems: readonly string[]; readonly files: readonly string[] };
      };
    }
  | { readonly problem: string }
);

export interface PersonalDataUseCases {
  readonly clock: Clock;
  readonly personalData: {
    readonly isErasing: boolean;
    readonly lastErasure: Ended | null;
    readonly find: (subject: Subject) => Promise<Traces>;
    readonly export: (subject: Subject) => AsyncIterable<Uint8Array>;
    readonly startErasing: (order: {
      readonly address: string;
      readonly keepSuppression: boolean;
      readonly by: string;
      readonly accountId: string;
    }) => Promise<boolean>;
  };
  /** Why a text is no address; null for one. */
  readonly addressProblem: (text: string) => string | null;
}

const PATH = "/settings/personal-data";
const FIND = `${PATH}/find`;
const EXPORT = `${PATH}/export`;
const ERASE = `${PATH}/erase`;
const ADDRESS_CHARACTERS_MAX = 500;

const address = z.string().trim().min(1, "Enter an address").max(ADDRESS_CHARACTERS_MAX);
const same = (text: string): string => text.trim().normalize("NFC").toLowerCase();

/** Find, export and erase what is stored about a person, and export the account. */
export const createPersonalDataPages = (useCases: PersonalDataUseCases) => {
  const { personalData } = useCases;
  const view = (found: Found | null = null): View => ({
    title: "Personal data",
    section: "settings",
    body: <PersonalDataPage {...{ found }} isErasing={personalData.isErasing} last={personalData.lastErasure} />,
  });
  const foundView = async (viewer: Viewer, text: string): Promise<View> =>
    view({ address: text, traces: await personalData.find(subjectOf(viewer, text)) });
  return [
    page({ path: PATH }, () => view()),
    formAction(
      { path: FIND, form: z.object({ address }) },
      ({ viewer, form }) => foundView(viewer, addressIn(form.address, useCases, false)),
      { rerender: () => view() },
    ),
    createExportAction(useCases, view),
    formAction(
      { path: ERASE, form: z.object({ address, again: address, drop: flag }) },
      async ({ viewer, form }) => {
        if (same(form.again) !== same(form.address)) throw refusal("again", "Must be the same address");
        const isStarted = await personalData.startErasing({
          address: addressIn(form.address, useCases),
          keepSuppression: !form.drop,
          by: viewer.user.id,
          accountId: viewer.account.id,
        });
        if (!isStarted) return redirectTo(viewer, PATH, { bad: "An erasure is running. Wait until it has ended." });
        return redirectTo(viewer, PATH, { ok: "The address is being erased. This page shows the result." });
      },
      {
        rerender: ({ viewer, values }) => {
          const text = String(values.address ?? "");
          return useCases.addressProblem(text) === null ? foundView(viewer, text) : view();
        },
      },
    ),
  ];
};

/** Downloads an archive: of the account, or with an address in the form, of the rows with it. */
const createExportAction = (useCases: PersonalDataUseCases, view: () => View) =>
  formAction(
    { path: EXPORT, form: z.object({ address: address.optional() }) },
    ({ request, viewer, form, done }) => {
      const isAccount = form.address === undefined;
      // Never the address: entries of the audit log cannot be erased.
      done.after = { of: isAccount ? "account" : "address" };
      const subject = isAccount
        ? { accountId: viewer.account.id, address: null }
        : subjectOf(viewer, addressIn(form.address ?? "", useCases));
      const day = isoDay(dayOfTime(useCases.clock.nowMs()));
      return streamRows(request, useCases.personalData.export(subject), {
        "content-type": "application/zip",
        "content-disposition": attachment(`postwarden-${isAccount ? viewer.account.name : "person"}-${day}`, ".zip"),
        "cache-control": "no-store",
      });
    },
    { rerender: () => view() },
  );

/** The address of a form; throws for a text that is not an address. A form in which it is hidden has no field to show that beside. */
const addressIn = (text: string, { addressProblem }: PersonalDataUseCases, isHidden = true): string => {
  const problem = addressProblem(text);
  if (problem === null) return text;
  throw isHidden ? new AppError("Invalid request body", { message: problem }) : refusal("address", problem);
};

const subjectOf = (viewer: Viewer, text: string): Subject => ({ accountId: scopeOf(viewer), address: text });

/** Operators see an address in all accounts, owners in their own. */
const scopeOf = ({ user, account }: Viewer): string | null => (user.isOperator ? null : account.id);

const refusal = (path: string, message: string) =>
  new AppError("Invalid request body", { issues: [{ path, message }] });

interface Found {
  readonly address: string;
  readonly traces: Traces;
}

interface PageProps {
  readonly found: Found | null;
  readonly isErasing: boolean;
  readonly last: Ended | null;
}

const PersonalDataPage = ({ found, isErasing, last }: PageProps) => {
  const isOperator = usePage().may(ERASE);
  return (
    <>
      <PageHead
        title="Personal data"
        meta="Answer a person who asks what is stored or wants it erased, and take all data of the account away."
      />
      <Columns side={<AccountExport />}>
        <Panel title="An address">
          <PostForm action={FIND} class="form">
            <Field
              name="address"
              label="Email address"
              value={found?.address ?? null}
              autocomplete="off"
              isRequired
              isMono
              hint={
                isOperator
                  ? "Searches every account, in verifications, lists, evidence, reports, events and settings."
                  : "Searches this account. Only an operator of the service can erase."
              }
            />
            <Button kind="main" icon="search">
              Find
            </Button>
          </PostForm>
        </Panel>
        {found !== null && <FoundPanel {...found} />}
        {isOperator && <LastErasure isErasing={isErasing} last={last} />}
      </Columns>
    </>
  );
};

const AccountExport = () => (
  <Panel title="Export the account">
    <PostForm action={EXPORT} class="form">
      <p>
        Everything that is stored of this account as JSON files in a ZIP archive: settings, users, verifications, lists,
        reports, events and usage. Passwords, keys and other secrets are left out.
      </p>
      <Button icon="download">Export the account</Button>
    </PostForm>
  </Panel>
);

/** Tables that a reader of the page knows by another name. */
const WORDS: Readonly<Record<string, string>> = {
  verification_evidence: "Evidence of verifications",
  bulk_evidence: "Evidence of lists",
  bulk_addresses: "Addresses of lists",
  bulk_rows: "Rows of lists",
  bulk_jobs: "Names and columns of lists",
  dmarc_raw: "Report mails and files",
  suppressions: "Suppression list",
  users: "Users of the dashboard, who are kept",
  outbox: "Events",
};

const titleOf = (table: string): string =>
  WORDS[table] ?? `${table.charAt(0).toUpperCase()}${table.slice(1).replaceAll("_", " ")}`;

const FoundPanel = ({ address: text, traces }: Found) => {
  const found = Object.entries(traces.tables).toSorted(([, a], [, b]) => b - a);
  if (found.length === 0)
    return (
      <Panel title="Found nowhere">
        <p>
          <span class="mono">{text}</span> is stored nowhere. Backups are not searched.
        </p>
      </Panel>
    );
  return (
    <>
      <Panel title={`Found in ${countText(found.length, "place")}`} aside={<span class="mono">{text}</span>} isFlush>
        <Rows>
          {found.map(([table, count]) => (
            <Row key={table} label={titleOf(table)}>
              {countText(count, "row")}
              {table === "bulk_addresses" && ` in ${countText(traces.lists, "list")}`}
            </Row>
          ))}
        </Rows>
      </Panel>
      <Panel title="Export these rows">
        <PostForm action={EXPORT} class="form">
          <input type="hidden" name="address" value={text} />
          <p>A ZIP archive with a JSON file for each place. Rows can contain data of other people, too.</p>
          <Button icon="download">Export</Button>
        </PostForm>
      </Panel>
      <EraseForm address={text} />
    </>
  );
};

const EraseForm = ({ address: text }: { readonly address: string }) =>
  usePage().may(ERASE) ? (
    <Panel title="Erase">
      <PostForm action={ERASE} class="form">
        <input type="hidden" name="address" value={text} />
        <p>
          Erasing removes the address from every account and cannot be undone. Verifications and report mails with it
          are deleted; in lists and other texts it is replaced.
        </p>
        <Field name="again" label="Type the address again" value={null} autocomplete="off" isRequired isMono />
        <CheckField name="drop" label="Remove it from the suppression list, too; otherwise its hash stays there" />
        <Button kind="danger" icon="trash-2">
          Erase this address
        </Button>
      </PostForm>
    </Panel>
  ) : null;

const LastErasure = ({ isErasing, last }: Pick<PageProps, "isErasing" | "last">) => {
  if (!isErasing && last === null) return null;
  return (
    <Live id="erasure" everyS={2} isOn={isErasing}>
      {isErasing ? (
        <p role="status">Erasing an address…</p>
      ) : (
        last !== null && ("run" in last ? <Outcome {...last} /> : <Failure {...last} />)
      )}
    </Live>
  );
};

const Outcome = ({ atMs, run }: Extract<Ended, { readonly run: unknown }>) => {
  const { erased, leftovers } = run;
  return (
    <Callout
      kind={leftovers.problems.length > 0 ? "warn" : "ok"}
      title={leftovers.problems.length > 0 ? "Not everything was erased" : "The last address was erased"}
      aside={<Time atMs={atMs} />}
    >
      {leftovers.problems.map((text) => (
        <p key={text}>{text}</p>
      ))}
      <Rows>
        <Row label="Verifications">{numberText(erased.verifications)}</Row>
        <Row label="Rows of lists">{numberText(erased.listRows)}</Row>
        <Row label="Report mails and files">{numberText(erased.reportMails)}</Row>
      </Rows>
      {leftovers.files.map((file) => (
        <p key={file}>
          <code>{file}</code> still contains the address. Delete it when you no longer need it.
        </p>
      ))}
    </Callout>
  );
};

const Failure = ({ atMs, problem }: Extract<Ended, { readonly problem: string }>) => (
  <Callout kind="bad" title="The last erasure failed" aside={<Time atMs={atMs} />}>
    <p>
      <Badge kind="bad">Failed</Badge> {problem}. Part of the address may be erased already; erase it again.
    </p>
  </Callout>
);
