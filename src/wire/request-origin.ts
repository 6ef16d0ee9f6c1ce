/**
 * Whose request it is, as far as a browser says. A page of somebody else's can have a browser send requests to this machine: from its
 * own origin, which the browser then names, or under a name of its own that it made point here, which `Host` then shows.
 */

/** What a browser says of where a request comes from and goes to. */
export interface RequestOrigin {
  readonly host?: string | undefined;
  readonly origin?: string | undefined;
  readonly "sec-fetch-site"?: string | string[] | undefined;
}

const THIS_MACHINE = /^(?:(?:[^:.]+\.)*localhost\.?|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/i;

/** Whether only programs of this machine reach a listener on an address. */
export function isLoopback(address: string): boolean {
  return LOOPBACK.test(address);
}

/** Whether a request was sent to this machine by a name that nobody else can give it. Who names no host is no browser. */
export function namesThisMachine({ host }: RequestOrigin): boolean {
  return host === undefined || THIS_MACHINE.test(host);
}

/** Whether a page of another origin had the request sent; programs that are no browsers say nothing of the kind. */
export function isFromForeignPage(headers: RequestOrigin): boolean {
  const { host, origin } = headers;
  const site = headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") return true;
  return origin !== undefined && origin.replace(/^https?:\/\//, "") !== host;
}
