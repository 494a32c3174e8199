// The bar of every page while the gateway does not respond; reads everything again when it does.
import { Alert } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { useLostAt } from "../api/reachability.ts";

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });

export function LostBanner() {
  const lostAt = useLostAt();
  const client = useQueryClient();
  const wasLost = useRef(false);
  useEffect(() => {
    if (lostAt === null && wasLost.current) void client.invalidateQueries();
    wasLost.current = lostAt !== null;
  }, [lostAt, client]);
  if (lostAt === null) return null;
  const time = clock.format(new Date(lostAt));
  return (
    <Alert color="red" variant="filled" role="alert" mb="md" className="lost-banner">
      Gateway unreachable, last seen {time}, reconnecting. This page shows values from then.
    </Alert>
  );
}
