/**
 * Loaded before every test: property tests draw the same values in each run, so that the same source gives the same result.
 * `SEED` draws others; `npm run tool -- fuzz --only properties` does that until its time is over.
 */
import fc from "fast-check";

const seed = Number(process.env.SEED ?? 1);
if (!Number.isInteger(seed)) throw new Error("SEED takes an integer");
fc.configureGlobal({ seed });
