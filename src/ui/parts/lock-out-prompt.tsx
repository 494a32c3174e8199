// Asks for confirmation before a change that locks out its own sender, which the gateway rejects without force; knows no page.
import { Stack, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { ApiError } from "../api/error.ts";

/** Goes into the query of the request. */
export type Force = { readonly force?: 1 };

/** Sends, and sends again with force if the gateway requires it and the user confirms. Rejects with the error otherwise. */
export async function sendUnlessLockedOut<T>(send: (query: Force) => Promise<T>): Promise<T> {
  try {
    return await send({});
  } catch (error) {
    if (!isShutOut(error) || !(await confirmLockOut(error))) throw error;
    return await send({ force: 1 });
  }
}

const isShutOut = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.status === 409 && error.message.includes("?force=1");

function confirmLockOut({ detail }: ApiError): Promise<boolean> {
  const address = /would (?:shut|lock) out (\S+),/.exec(detail)?.[1] ?? null;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  modals.openConfirmModal({
    title: "Lock yourself out?",
    children: (
      <Stack gap="xs">
        <Text size="sm">
          {address === null ? "Your address" : `Your address ${address}`} is not in the allowed
          networks of this UI and the API. You lose access when you save.
        </Text>
        <Text size="sm">
          On the machine itself, <code>sluice reset-admin-networks</code> restores access.
        </Text>
      </Stack>
    ),
    labels: { confirm: "Save anyway", cancel: "Cancel" },
    confirmProps: { color: "red" },
    onConfirm: () => resolve(true),
    onClose: () => resolve(false),
  });
  return promise;
}
