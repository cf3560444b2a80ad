import { getServices, staff, userOf } from '@/rondo';

export async function GET(request: Request): Promise<Response> {
  if (!staff.includes(userOf(request) ?? '')) return new Response(null, { status: 403 });
  const { rondo } = await getServices();
  return Response.json(await rondo.approvals());
}
