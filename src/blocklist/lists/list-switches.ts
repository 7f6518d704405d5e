import { nearestName } from "../../foundation/base/nearest.ts";
import type { Result } from "../../foundation/base/errors.ts";
import { err, ok } from "../../foundation/base/errors.ts";
import { type Blocklist, type Catalogue, zoneOf } from "./blocklist.ts";

/** Ids of lists that the operator of this service enables or disables for everybody. */
export interface ListSwitches {
  readonly enable: readonly string[];
  readonly disable: readonly string[];
}

/** What is wrong with each of the two settings, as sentences. */
export type SwitchProblems = Readonly<Record<keyof ListSwitches, readonly string[]>>;

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
