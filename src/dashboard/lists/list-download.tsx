import { GROUP_LABELS, ROW_GROUPS, type RowChoice } from "../../bulk/job-queries.ts";
import type { JobRow } from "../../bulk/results/job-store.ts";
import type { EXPORT_COLUMNS, PRESETS } from "../../bulk/results/results-csv.ts";
import { Button, CheckField, GetForm, SelectField } from "../components/form.tsx";
import { ButtonLink } from "../components/inline.tsx";
import { countText, numberText } from "../components/figures.tsx";
import { Panel } from "../components/panel.tsx";
import { usePage } from "../visit.ts";

/** The rows that a filter can show, in words. A choice that is made stays among them. */
export const showOptions = (
  { rowsFinished, rowsTotal, rowsEmpty }: JobRow,
  chosen: string,
): ReadonlyArray<readonly [value: RowChoice | "", text: string]> => [
  ["", "All rows"],
  ...ROW_GROUPS.map((group) => [group, GROUP_LABELS[group]] as const),
  ["risky", "Risky, of every kind"],
  ...(rowsFinished < rowsTotal || chosen === "unfinished" ? [["unfinished", "Without a result"] as const] : []),
  ...(rowsEmpty > 0 || chosen === "no_address"
    ? [["no_address", `Without an address (${numberText(rowsEmpty)})`] as const]
    : []),
];

const PRESET_OPTIONS = [
  ["", "A spreadsheet (CSV)"],
  ["mailchimp", "Mailchimp"],
  ["brevo", "Brevo"],
  ["hubspot", "HubSpot"],
  ["listmonk", "listmonk"],
] as const satisfies ReadonlyArray<readonly [value: (typeof PRESETS)[number] | "", text: string]>;

const COLUMN_OPTIONS = [
  ["all", "My columns and results"],
  ["uploaded", "My columns"],
  ["address", "Addresses only"],
] as const satisfies ReadonlyArray<readonly [value: (typeof EXPORT_COLUMNS)[number], text: string]>;

/** What is chosen for a download, and what the file will have. */
export interface DownloadChoice {
  readonly show: string;
  readonly reason: string | undefined;
  readonly q: string | undefined;
  readonly host: number | undefined;
  readonly preset: string | undefined;
  readonly columns: string;
  readonly isDistinct: boolean;
  readonly isClean: boolean;
  /** Rows in the file; null when they are not counted. */
  readonly rows: number | null;
  /** The names of its columns. */
  readonly names: readonly string[];
}

const NAMES_SHOWN = 12;
const NAME_CHARACTERS = 40;

const cut = (name: string): string => (name.length > NAME_CHARACTERS ? `${name.slice(0, NAME_CHARACTERS)}…` : name);

/** What will be in the file, as it was chosen when the page was loaded. */
const FileFacts = ({ rows, names, preset, columns }: DownloadChoice) => {
  const shown = names.slice(0, NAMES_SHOWN).map(cut);
  const more = names.length - shown.length;
  return (
    <p id="file-facts">
      {rows !== null && (
        <>
          <b class="num">{countText(rows, "row")}</b> with{" "}
        </>
      )}
      {countText(names.length, "column")}: {shown.join(", ")}
      {more > 0 && ` and ${countText(more, "other")}`}.{" "}
      {preset !== undefined || columns !== "all"
        ? "Verdicts and the other result columns are left out."
        : "Your columns come first, then those of the results."}
      {columns === "address" && preset === undefined && " So are your other columns."}
    </p>
  );
};

/** Chooses which rows are downloaded, in which columns, and says what that is. It opens from the button at the head of the page. */
export const DownloadPanel = ({ job, choice }: { readonly job: JobRow; readonly choice: DownloadChoice }) => {
  const { show, reason, q, host, preset, columns, isDistinct, isClean, rows } = choice;
  const path = `/lists/${job.id}`;
  const { href } = usePage();
  const isNarrowed = reason !== undefined || q !== undefined || host !== undefined;
  return (
    <Panel title="Download" id="download" aside={<ButtonLink href={path}>Close</ButtonLink>}>
      <GetForm action={path} class="form">
        <input type="hidden" name="confirm" value="download" />
        <div class="three-ways">
          <SelectField name="show" label="Rows" value={show} options={showOptions(job, show)} isImmediate />
          <SelectField name="preset" label="For" value={preset ?? ""} options={PRESET_OPTIONS} isImmediate />
          {preset === undefined ? (
            <SelectField name="columns" label="Columns" value={columns} options={COLUMN_OPTIONS} isImmediate />
          ) : (
            <input type="hidden" name="columns" value={columns} />
          )}
        </div>
        <CheckField name="distinct" value="true" label="Each address once" isChecked={isDistinct} isImmediate />
        {preset === undefined && (
          <CheckField
            name="clean"
            value="true"
            label="Cleaned addresses"
            hint="Without the names and mailto: of their cells."
            isChecked={isClean}
            isImmediate
          />
        )}
        {reason !== undefined && <input type="hidden" name="reason" value={reason} />}
        {q !== undefined && <input type="hidden" name="q" value={q} />}
        {host !== undefined && <input type="hidden" name="host" value={host} />}
        {isNarrowed && <p class="soft">Only the rows that the table shows.</p>}
        <FileFacts {...choice} />
        <div class="actions">
          <Button kind="main" icon="download" action={href(`${path}/results.csv`)} isDisabled={rows === 0}>
            Download
          </Button>
          <Button>Count the rows</Button>
        </div>
      </GetForm>
    </Panel>
  );
};
