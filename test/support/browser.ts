/** Owns: a browser without a screen: it follows redirects with cookies, as a user who agrees to everything. */

const MOST_REDIRECTS = 20;

export interface Page {
  /** The last address, which a user could paste. */
  url: string;
  /** 0: nothing listens at the last address. */
  status: number;
  text: string;
}

/** Cookies by origin and name. Paths and attributes are ignored, since each server of a test has its own origin. */
class Cookies {
  #jars = new Map<string, Map<string, string>>();

  take(url: URL, response: Response): void {
    const jar = this.#jars.get(url.origin) ?? new Map<string, string>();
    this.#jars.set(url.origin, jar);
    for (const line of response.headers.getSetCookie()) {
      const [pair = ""] = line.split(";");
      const at = pair.indexOf("=");
      const value = pair.slice(at + 1);
      if (value === "") jar.delete(pair.slice(0, at));
      else jar.set(pair.slice(0, at), value);
    }
  }

  header(url: URL): string {
    return [...(this.#jars.get(url.origin) ?? [])].map(([name, value]) => `${name}=${value}`).join("; ");
  }
}

/** Opens the address and follows all redirects. `stopsAt`: an address that is not opened, as behind a firewall. */
export async function browse(address: string, stopsAt?: (url: URL) => boolean): Promise<Page> {
  const cookies = new Cookies();
  let url = new URL(address);
  for (let redirects = 0; redirects < MOST_REDIRECTS; redirects += 1) {
    if (stopsAt?.(url)) return { url: url.href, status: 0, text: "" };
    const cookie = cookies.header(url);
    const response = await fetch(url, { redirect: "manual", headers: cookie === "" ? {} : { cookie } });
    cookies.take(url, response);
    const location = response.headers.get("location");
    if (location === null) return { url: url.href, status: response.status, text: await response.text() };
    await response.body?.cancel();
    url = new URL(location, url);
  }
  throw new Error(`more than ${MOST_REDIRECTS} redirects from ${address}`);
}
