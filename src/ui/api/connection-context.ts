// The context of the API connection; knows no page.
import { createContext, useContext } from "react";
import type { Connection } from "./connection.ts";

export const ConnectionContext = createContext<Connection | null>(null);

/** The connection to the gateway that this page came from. */
export function useConnection(): Connection {
  const connection = useContext(ConnectionContext);
  if (connection === null) throw new Error("no ConnectionContext above this component");
  return connection;
}
