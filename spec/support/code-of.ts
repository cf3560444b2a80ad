// Error codes of rejected promises.

/** Returns the error code with which a promise rejects, or 'nothing' if it resolves. */
export async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'nothing';
  } catch (error) {
    return (error as { code?: string }).code ?? `untyped: ${error}`;
  }
}
