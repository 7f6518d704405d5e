import { integer, text } from "drizzle-orm/sqlite-core";

// Columns that many tables have. Without a name, a column is called as its field.

export const requiredText = (name = "") => text(name).notNull();

export const requiredInteger = (name = "") => integer(name).notNull();

/** A number that begins at 0. */
export const counter = (name = "") => requiredInteger(name).default(0);

export const requiredFlag = (name = "") => integer(name, { mode: "boolean" }).notNull();

/** Whether a row belongs to live or to test keys. */
export const modeColumn = () => text("mode", { enum: ["live", "test"] }).notNull();
