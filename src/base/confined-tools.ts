/**
 * The tools in code that confine themselves to the roots and destinations of a grant: those of the toolbox. They are
 * known by their input schema, which every copy of a tool shares and no other tool has.
 */

const confinedSchemas = new WeakSet<object>();

/** Records that the tools with this input schema confine themselves. */
export function markConfined(inputSchema: object): void {
  confinedSchemas.add(inputSchema);
}

/** True if a tool with this input schema confines itself. */
export function isConfined(inputSchema: unknown): boolean {
  return typeof inputSchema === 'object' && inputSchema !== null && confinedSchemas.has(inputSchema);
}
