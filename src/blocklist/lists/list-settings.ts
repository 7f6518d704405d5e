import { type Result, err, ok } from "../../foundation/base/errors.ts";
import { type Blocklist, type Catalogue, zoneOf } from "./blocklist.ts";
import { nearestName } from "../../foundation/base/nearest.ts";

/** A key is one label of the query name. */
const KEY = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;
const KEY_MASK = "{key}";

/** Parses the setting `list=key,list=key`. Fails with sentences, none of which contains a key. */
export const parseListKeys = (text: string): Result<ReadonlyMap<string, string>, readonly string[]> => {
  const keys = new Map<string, string>();
  const problems: string[] = [];
  for (const [index, pair] of text.split(",").entries()) {
    if (pair.trim() === "") continue;
    const at = pair.indexOf("=");
    const id = pair.slice(0, Math.max(0, at)).trim();
    if (id === "") problems.push(`Entry ${index + 1} does not have the form list=key.`);
    else if (keys.has(id)) problems.push(`The list "${id}" has two keys.`);
    else keys.set(id, pair.slice(at + 1).trim());
  }
  return problems.length === 0 ? ok(keys) : err(problems);
};

/**
 * The same catalogue with keys by list id; a list with a key is queried at its keyed zone. Fails with sentences (without
 * the key) for an unknown list, a list without a keyed zone, and a key that is not a valid DNS label.
 */
export const applyKeys = (
  catalogue: Catalogue,
  keys: ReadonlyMap<string, string>,
): Result<Catalogue, readonly string[]> => {
  const problems = [...keys].flatMap(([id, key]) => keyProblems(catalogue, id, key));
  if (problems.length > 0) return err(problems);
  // Names are compared in lower case, so the key must be lower case for the mask to find it.
  const withKey = (list: Blocklist): Blocklist => ({ ...list, key: keys.get(list.id)?.toLowerCase() ?? list.key });
  return ok({ ...catalogue, lists: catalogue.lists.map(withKey) });
};

const keyProblems = ({ lists }: Catalogue, id: string, key: string): string[] => {
  const list = lists.find((candidate) => candidate.id === id);
  if (list === undefined) return [`There is a key for "${id}", which is not in the catalogue.`];
  if (list.keyedZone === null) return [`There is a key for the list "${id}", which uses none.`];
  return KEY.test(key) ? [] : [`The key for the list "${id}" must be 1 to 63 letters, digits and hyphens.`];
};

/** Replaces every occurrence of the list's key by `{key}`, in any case: for logs, history and users. */
export const maskKey = ({ key }: Pick<Blocklist, "key">, text: string): string => {
  if (key === null) return text;
  // input ≤ 65,536 characters
  return text.replace(new RegExp(RegExp.escape(key), "gi"), KEY_MASK);
};

/** Ids of lists that the operator of this service enables or disables for everybody. */
interface ListSwitches {
  readonly enable: readonly string[];
  readonly disable: readonly string[];
}

/** What is wrong with each of the two settings, as sentences. */
type SwitchProblems = Readonly<Record<keyof ListSwitches, readonly string[]>>;

/**
 * The same catalogue with lists enabled and disabled; apply keys before. Fails for an id that is not in the catalogue
 * (with the nearest one), for a list in both settings, and for an enabled list without the key that it requires.
 */
export const applySwitches = (
  catalogue: Catalogue,
  { enable, disable }: ListSwitches,
): Result<Catalogue, SwitchProblems> => {
  const { lists } = catalogue;
  const unknown = (ids: readonly string[]) => ids.flatMap((id) => unknownProblem(lists, id) ?? []);
  const keyless = lists
    .filter((list) => enable.includes(list.id) && zoneOf(list) === null)
    .map(({ id }) => `"${id}" needs a key: set POSTWARDEN_BLOCKLIST_KEYS.`);
  const twice = disable
    .filter((id) => enable.includes(id))
    .map((id) => `"${id}" is in POSTWARDEN_BLOCKLISTS_ENABLE as well.`);
  const problems = { enable: [...unknown(enable), ...keyless], disable: [...unknown(disable), ...twice] };
  if (problems.enable.length + problems.disable.length > 0) return err(problems);
  const switched = (list: Blocklist): Blocklist => {
    if (enable.includes(list.id)) return { ...list, switchedOn: true };
    return disable.includes(list.id) ? { ...list, switchedOn: false } : list;
  };
  return ok({ ...catalogue, lists: lists.map(switched) });
};

const unknownProblem = (lists: readonly Blocklist[], id: string): string | null => {
  const ids = lists.map((list) => list.id);
  if (ids.includes(id)) return null;
  const near = nearestName(id, ids);
  return `"${id}" is not in the catalogue.${near === null ? " Run `postwarden blocklist lists` to see all." : ` Did you mean "${near}"?`}`;
};
