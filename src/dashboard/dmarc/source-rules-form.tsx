import { SOURCE_RULES_MAX, type SourceRule } from "../../dmarc/records/domains/source-rules.ts";
import { CLASSIFICATIONS } from "../../dmarc/insight/sources/rollup-store.ts";
import { Button, Field, PostForm, SelectField } from "../components/form.tsx";
import { numberText } from "../components/number.tsx";
import { Panel } from "../components/panel.tsx";
import { usePage } from "../visit.ts";
import { ClassBadge } from "./source-classes.tsx";
import { CLASS_WORDS } from "./dmarc-words.ts";

/** A rule in words: what an address must be for it to match. */
export const ruleWords = ({ reverse_name: name, network, asn, country, authenticated }: SourceRule): string =>
  [
    name === undefined
      ? ""
      : name === "none"
        ? "no reverse name"
        : name === "generic"
          ? "a generic reverse name"
          : `reverse name in ${name}`,
    network === undefined ? "" : `address in ${network}`,
    asn === undefined ? "" : `AS${asn}`,
    country === undefined ? "" : `registered in ${country}`,
    authenticated === undefined ? "" : authenticated ? "SPF or DKIM passes" : "nothing passes",
  ]
    .filter((text) => text !== "")
    .join(", ");

/** The user's rules about sources, in the order in which they are tried. */
export const SourceRules = ({ id, rules }: { readonly id: string; readonly rules: readonly SourceRule[] }) => {
  const isWrong = usePage().form?.action === `/dmarc/${id}/rules`;
  return (
    <Panel title="Rules" id="rules" aside={`${numberText(rules.length)} of at most ${SOURCE_RULES_MAX}`}>
      <p class="soft">
        Classify sources by what their addresses are. The first rule that matches counts. The class of a source itself
        overrides it.
      </p>
      {rules.length > 0 && (
        <ol class="rule-list">
          {rules.map((rule, at) => (
            <li key={at}>
              <span>{ruleWords(rule)}</span>
              <ClassBadge classification={rule.classification} />
              <PostForm action={`/dmarc/${id}/rules/remove`}>
                <input type="hidden" name="rule" value={JSON.stringify(rule)} />
                <Button kind="quiet" icon="trash-2">
                  Remove
                </Button>
              </PostForm>
            </li>
          ))}
        </ol>
      )}
      <details open={isWrong}>
        <summary>Add a rule</summary>
        <RuleForm id={id} />
      </details>
    </Panel>
  );
};

const RuleForm = ({ id }: { readonly id: string }) => (
  <PostForm action={`/dmarc/${id}/rules`} class="form">
    <Field
      name="reverse_name"
      label="Reverse name"
      placeholder="example.net"
      hint="A domain that the confirmed reverse name is at or below; or none, or generic."
    />
    <Field name="network" label="Network" placeholder="192.0.2.0/24" isMono />
    <Field name="asn" label="AS number" type="number" min={1} placeholder="64500" />
    <Field name="country" label="Country of the network" placeholder="DE" />
    <SelectField
      name="authenticated"
      label="Authentication"
      options={[
        ["", "Any"],
        ["true", "SPF or DKIM passes for some domain"],
        ["false", "Nothing passes"],
      ]}
    />
    <SelectField
      name="classification"
      label="Class"
      options={CLASSIFICATIONS.map((one) => [one, CLASS_WORDS[one].text] as const)}
    />
    <div class="actions">
      <Button kind="main">Add the rule</Button>
    </div>
  </PostForm>
);
