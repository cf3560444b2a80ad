export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME !== 'nodejs') return;
  const { getServices } = await import('@/rondo');
  const { rondo } = await getServices();
  rondo.work().catch(console.error); // continues what earlier processes left behind
  process.once('SIGTERM', () => rondo.close());
}
