import { getServices } from '@/rondo';

export async function POST(request: Request): Promise<Response> {
  const { chat } = await getServices();
  return chat(request);
}
