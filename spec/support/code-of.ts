/** The code of what a promise rejects with; 'nothing' if it does not. */
export async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'nothing';
  } catch (error) {
    return (error as { code?: string }).code ?? `untyped: ${error}`;
  }
}
