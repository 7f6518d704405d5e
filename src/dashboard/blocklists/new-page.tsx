import type { KeyMode } from "../../foundation/base/secrets.ts";
import type { CheckCost } from "../../blocklist/list-status.ts";
import { parseTargetOrRange } from "../../blocklist/parse-target.ts";
import { Button, CheckField, Field, PostForm, TextAreaField } from "../components/form.tsx";
import { countText, numberText, percentText } from "../components/number.tsx";
import { Callout, Columns, PageHead, Panel } from "../components/panel.tsx";
import type { FormState } from "../visit.ts";
import { type Settings, SettingsFields } from "./settings-form.tsx";

/** A line that is no target. */
export interface InvalidLine {
  readonly line: number;
  readonly given: string;
  readonly problem: string;
}

/** What was pasted, read line by line. */
export interface ReadTargets {
  readonly valid: readonly string[];
  readonly problems: readonly InvalidLine[];
  /** Addresses in ranges. */
  readonly inRanges: number;
}

const SHOWN_CHARACTERS_MAX = 100;
const PROBLEMS_SHOWN_MAX = 50;

/** Reads targets, one a line; empty lines are skipped. */
export const readTargets = (text: string, mode: KeyMode): ReadTargets => {
  const valid: string[] = [];
  const problems: InvalidLine[] = [];
  let inRanges = 0;
  for (const [at, raw] of text.split(/\r\n|\r|\n/).entries()) {
    const given = raw.trim();
    if (given === "") continue;
    const parsed = parseTargetOrRange(given, mode);
    if (parsed.ok) valid.push(given);
    else problems.push({ line: at + 1, given: given.slice(0, SHOWN_CHARACTERS_MAX), problem: parsed.error });
    if (parsed.ok && parsed.value.addresses !== null) inRanges += parsed.value.addresses.length;
  }
  return { valid, problems, inRanges };
};

/** A candidate that was found for a domain or for this service. */
export interface FoundTarget {
  readonly target: string;
  readonly source: string;
}

export interface NewPageProps {
  readonly values: FormState["values"];
  readonly read: ReadTargets;
  /** Set when ranges wait for a confirmation. */
  readonly cost: CheckCost | null;
  readonly found: readonly FoundTarget[];
  /** What could not be found out, as sentences; null before the search. */
  readonly unknown: readonly string[] | null;
}

export const NEW_PATH = "/blocklists/new";
export const DISCOVER_PATH = "/blocklists/discover";

const textOf = (values: FormState["values"], name: string): string | null => {
  const value = values[name];
  return typeof value === "string" && value !== "" ? value : null;
};

/** Adds targets: pasted, or found for a domain. */
export const NewPage = (props: NewPageProps) => (
  <>
    <PageHead title="Add targets" crumbs={[["Blocklists", "/blocklists"]]} />
    {props.unknown !== null && <Found {...props} />}
    <Columns side={<Discover {...props} />}>
      <Panel title="Domains, addresses and ranges">
        <AddForm {...props} />
      </Panel>
    </Columns>
  </>
);

const AddForm = ({ values, read, cost }: NewPageProps) => {
  const settings: Partial<Settings> = {
    ...{ label: textOf(values, "label"), webhook_url: textOf(values, "webhook_url") },
    ...{ alert_severity_min: textOf(values, "alert_severity_min"), recipients: textOf(values, "recipients") ?? "" },
  };
  return (
    <PostForm action={NEW_PATH} class="form">
      <TextAreaField
        name="targets"
        label="One a line"
        value={textOf(values, "targets")}
        placeholder={"example.com\n192.0.2.1\n2001:db8::1\n198.51.100.0/24"}
        rows={8}
        isMono
        isRequired
        hint="Up to 10,000 lines. A range has at most 1,024 IPv4 addresses: 198.51.100.0/24 or 198.51.100.1-198.51.100.9."
      />
      <Problems read={read} />
      {cost !== null && <Cost cost={cost} />}
      <SettingsFields settings={settings} />
      <div class="actions">
        <Button kind="main" icon="plus">
          Add
        </Button>
      </div>
    </PostForm>
  );
};

/** Each line that is wrong, and a way to add the others. */
const Problems = ({ read: { valid, problems } }: Pick<NewPageProps, "read">) => {
  if (problems.length === 0) return null;
  return (
    <Callout kind="bad" title={`${countText(problems.length, "line")} cannot be added. Nothing was added yet.`}>
      <ul class="names">
        {problems.slice(0, PROBLEMS_SHOWN_MAX).map(({ line, given, problem }) => (
          <li key={line}>
            Line {line}, <span class="mono">{given}</span>: {problem}
          </li>
        ))}
        {problems.length > PROBLEMS_SHOWN_MAX && <li>and {problems.length - PROBLEMS_SHOWN_MAX} more</li>}
      </ul>
      {valid.length > 0 && (
        <div class="actions">
          <Button name="only_valid" value="yes">
            Add the other {countText(valid.length, "line")}
          </Button>
        </div>
      )}
    </Callout>
  );
};

const Cost = ({ cost: { addresses, lists, queriesPerDay, tightest } }: { readonly cost: CheckCost }) => (
  <Callout
    kind={tightest !== null && tightest.share > 1 ? "warn" : "info"}
    title={`${countText(addresses, "address", "addresses")} take ${numberText(queriesPerDay)} queries a day`}
    actions={
      <Button kind="main" name="confirmed" value="yes">
        Add them
      </Button>
    }
  >
    <p>
      Each address is checked on {countText(lists, "list")} every six hours.
      {tightest !== null &&
        ` That is ${percentText(tightest.share)} of what ${tightest.name} allows a day${tightest.share > 1 ? ": it will be unknown for a part of them" : ""}.`}{" "}
      It costs no credits.
    </p>
  </Callout>
);

/** Asks for a domain whose mail hosts and addresses may be targets. */
export const Discover = ({ values }: Pick<NewPageProps, "values">) => (
  <Panel title="Find what belongs to you">
    <p class="soft">Enter a domain to find its mail hosts and the addresses in its SPF record.</p>
    <PostForm action={DISCOVER_PATH} class="form">
      <Field name="domain" label="Domain" placeholder="example.com" value={textOf(values, "domain")} isMono />
      <CheckField
        name="egress"
        label="The addresses of this service"
        hint="From which it verifies addresses and sends alerts."
        isChecked={values.egress === "on"}
      />
      <div class="actions">
        <Button icon="search">Search</Button>
      </div>
    </PostForm>
  </Panel>
);

const Found = ({ found, unknown }: NewPageProps) => (
  <Panel title={found.length === 0 ? "Nothing was found" : `${countText(found.length, "target")} found`}>
    {found.length > 0 && (
      <PostForm action="/blocklists/found" class="form">
        {found.map(({ target, source }) => (
          <CheckField
            key={target}
            name="found"
            value={target}
            isChecked
            label={<span class="mono">{target}</span>}
            hint={source}
          />
        ))}
        <Field name="label" label="Label" hint="For all of them." />
        <div class="actions">
          <Button kind="main" icon="plus">
            Monitor the chosen ones
          </Button>
        </div>
      </PostForm>
    )}
    {unknown !== null && unknown.length > 0 && (
      <ul class="names soft small">
        {unknown.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    )}
  </Panel>
);
