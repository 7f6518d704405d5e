import type { Clock } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import type { Db } from "../db/open.ts";
import type { ListingNotes, ListingStore } from "./listing-store.ts";
import type { BlocklistStore, TargetRow } from "./store.ts";

export interface ListingNotesDeps {
  readonly db: Db;
  readonly store: BlocklistStore;
  readonly listings: ListingStore;
  readonly clock: Clock;
}

/** What somebody notes about a listing; what is not given stays, false and null remove. */
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

/** Notes about listings: seen and accepted, delisting requested, free text. They end with the listing. */
export const createListingNotes = ({ db, store, listings, clock }: ListingNotesDeps) => ({
  /** Notes something about a listing of a target, or of all addresses of a range; `by` is the name of the key. Throws `not_found` when it is not listed there. */
  async change(
    target: TargetRow,
    listing: string,
    { by, wanted }: { by: string; wanted: NotesChange },
  ): Promise<TargetRow> {
    const notes = notesOf(wanted, by, clock.nowMs());
    const isRange = target.members !== null;
    const changed = await db.commit((tx) => {
      if (!target.listedOn.includes(listing)) return 0;
      if (Object.keys(notes).length === 0) return 1;
      return listings.annotate(tx, { id: target.id, isRange }, listing, notes);
    });
    const current = store.findTarget(target.id);
    if (changed > 0 && current !== undefined) return current;
    throw new AppError("not_found", { message: `The target is not listed on "${listing.slice(0, 100)}" at present.` });
  },
});

export type ListingNotesUse = ReturnType<typeof createListingNotes>;
