/** The notifications of a server that one of its lists has changed. Both eras have the same ones. */
import type { Protocol } from "@modelcontextprotocol/sdk/shared/protocol.js";
import {
  type Notification,
  PromptListChangedNotificationSchema,
  type Request,
  ResourceListChangedNotificationSchema,
  type Result,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

type Listening = Pick<Protocol<Request, Notification, Result>, "setNotificationHandler">;

export function onListChanges(client: Listening, onChanged: () => void): void {
  client.setNotificationHandler(ToolListChangedNotificationSchema, onChanged);
  client.setNotificationHandler(ResourceListChangedNotificationSchema, onChanged);
  client.setNotificationHandler(PromptListChangedNotificationSchema, onChanged);
}
