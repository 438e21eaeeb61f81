/** Compares a `state` with the one that was sent, in a time that says nothing about where they differ. Pure. */
import { createHash, timingSafeEqual } from "node:crypto";

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

export const isSameState = (received: string, sent: string): boolean =>
  timingSafeEqual(digest(received), digest(sent));
