import type { Draft } from "../../bulk/arrival/drafts.ts";
import { Empty } from "../components/empty.tsx";
import { Field, Filters, SelectField } from "../components/form.tsx";
import { Link } from "../components/link.tsx";
import { Live } from "../components/live.tsx";
import { bytesText } from "../components/number.tsx";
import { PageHead, Panel } from "../components/panel.tsx";
import { Pager } from "../components/table.tsx";
import { Time } from "../components/time.tsx";
import { usePage } from "../context.ts";
import { withParameters } from "../url.ts";
import { STATUS_OPTIONS } from "./list-words.ts";
import { type ListFacts, ListTable } from "./list-table.tsx";
import { UploadForms } from "./upload-forms.tsx";

const LIVE_S = 5;
export const CSV_PATH = "/lists/all.csv";

export interface AddressListsPageProps {
  readonly lists: readonly ListFacts[];
  readonly drafts: readonly Draft[];
  readonly filters: { readonly status: string | undefined; readonly q: string | undefined };
  readonly cursor: string | undefined;
  readonly next: string | null;
  readonly isTest: boolean;
}

const TEACHES =
  "Upload a list of addresses, and you get back which can be mailed, which cannot, and why. You see what was found in the file and what it costs before anything starts.";

/** What a list is, for an account that has none yet. */
const NoLists = ({ isTest }: { readonly isTest: boolean }) => (
  <Empty title="No list yet">
    <p>{TEACHES}</p>
    {isTest && (
      <p>
        In test mode nothing is charged and no server is contacted: the part before the @ decides, such as{" "}
        <code>mailbox_not_found@any.example</code>.
      </p>
    )}
  </Empty>
);

const Waiting = ({ drafts }: { readonly drafts: readonly Draft[] }) => (
  <Panel title="Uploaded, not started" isFlush>
    <ul class="plain-list">
      {drafts.map(({ id, fileName, bytes, expiresAtMs }) => (
        <li key={id}>
          <Link href={`/lists/new?draft=${id}`}>{fileName ?? "Pasted addresses"}</Link>{" "}
          <span class="soft small">
            {bytesText(bytes)}, kept until <Time atMs={expiresAtMs} style="clock" />
          </span>
        </li>
      ))}
    </ul>
  </Panel>
);

/** The lists that are shown as a file. */
const CsvLink = ({ status, q }: AddressListsPageProps["filters"]) => {
  const { href } = usePage();
  return (
    <a href={withParameters(href(CSV_PATH), { status: status ?? null, q: q ?? null })} download>
      CSV
    </a>
  );
};

/** `/lists`: how to add one, and all of them. */
export const AddressListsPage = ({ lists, drafts, filters, cursor, next, isTest }: AddressListsPageProps) => {
  const isFiltered = filters.status !== undefined || filters.q !== undefined;
  const isLater = cursor !== undefined;
  const isRunning = lists.some(({ job }) => job.status === "running" || job.status === "queued");
  const isEmpty = lists.length === 0;
  return (
    <>
      <PageHead title="Lists" />
      <Panel title="Verify a list">
        <UploadForms />
      </Panel>
      {drafts.length > 0 && <Waiting drafts={drafts} />}
      {isEmpty && !isFiltered && !isLater ? (
        <Panel isFlush>
          <NoLists isTest={isTest} />
        </Panel>
      ) : (
        <Panel title="Your lists" aside={<CsvLink {...filters} />} isFlush>
          <Filters action="/lists">
            <SelectField
              name="status"
              label="Status"
              value={filters.status ?? ""}
              options={STATUS_OPTIONS}
              isImmediate
            />
            <Field name="q" type="search" label="Name contains" value={filters.q ?? ""} />
          </Filters>
          <Live id="lists" everyS={LIVE_S} isOn={isRunning}>
            {isEmpty ? (
              <Empty title="No list matches">
                <p>
                  Choose another status or text, or <Link href="/lists">show all lists</Link>.
                </p>
              </Empty>
            ) : (
              <ListTable lists={lists} />
            )}
          </Live>
          <Pager next={next} isLater={isLater} />
        </Panel>
      )}
    </>
  );
};
