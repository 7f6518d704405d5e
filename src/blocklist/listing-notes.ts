import { AppError } from "../foundation/base/errors.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { ListingNotes, ListingStore } from "./listing-store.ts";
import type { BlocklistStore, TargetRow } from "./store.ts";

/** A change of the notes about a listing; missing fields stay as they are, false and null remove. */
export interface NotesChange {
  readonly acknowledged?: boolean | undefined;
  readonly delisting_requested?: boolean | undefined;
  readonly note?: string | null | undefined;
}

const notesOf = ({ acknowledged, delisting_requested, note }: NotesChange, by: string, atMs: number): ListingNotes => {
  const mark = (isSet: boolean) => ({ by: isSet ? by : null, atMs: isSet ? atMs : null });
  const [known, requested, noted] = [acknowledged, delisting_requested, note].map((value) =>
    value === undefined ? null : mark(value !== false && value !== null),
  );
  return {
    ...(known && { acknowledgedBy: known.by, acknowledgedAtMs: known.atMs }),
    ...(requested && { delistingRequestedBy: requested.by, delistingRequestedAtMs: requested.atMs }),
    ...(noted && { note: note ?? null, noteBy: noted.by, noteAtMs: noted.atMs }),
  };
};

/** Changes the notes about listings: acknowledged, delisting requested, free text. They are removed with the listing. */
export class ListingNotesEditor {
  constructor(
    private readonly runtime: Runtime,
    private readonly deps: { readonly store: BlocklistStore; readonly listings: ListingStore },
  ) {}

  /** Annotates a listing of a target, or of all addresses of a range. `by` is the name of the key. Throws `not_found` when it is not listed. */
  async change(
    target: TargetRow,
    listing: string,
    { by, change }: { readonly by: string; readonly change: NotesChange },
  ): Promise<TargetRow> {
    const notes = notesOf(change, by, this.runtime.clock.nowMs());
    const isRange = target.members !== null;
    const changed = await this.runtime.db.commit((tx) => {
      if (!target.listedOn.includes(listing)) return 0;
      if (Object.keys(notes).length === 0) return 1;
      return this.deps.listings.annotate(tx, { id: target.id, isRange }, listing, notes);
    });
    const current = this.deps.store.findTarget(target.id);
    if (changed > 0 && current !== undefined) return current;
    throw new AppError("not_found", { message: `The target is not listed on "${listing.slice(0, 100)}".` });
  }
}
