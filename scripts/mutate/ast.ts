import { z } from "zod";

const nodeSchema = z.looseObject({ type: z.string(), start: z.number(), end: z.number() });

/** A node of the syntax tree. */
export type AstNode = z.output<typeof nodeSchema>;

export const isNode = (value: unknown): value is AstNode => nodeSchema.safeParse(value).success;

/** What a node allows to be changed: where, and what instead. */
export interface Change {
  readonly at: AstNode;
  readonly replacement: string;
  readonly description: string;
}
