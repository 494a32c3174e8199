// The last page of a tab opened for sign-in, while the original page waits in another tab.
import { Text } from "@mantine/core";
import { useEffect } from "react";
import { EntranceLayout } from "./entrance-layout.tsx";

export default function SignedInPage() {
  // Browsers refuse to close tabs that the user opened: the text stays then.
  useEffect(() => window.close(), []);
  return (
    <EntranceLayout title="You are signed in">
      <Text>The page in the other tab continues automatically. You can close this one.</Text>
    </EntranceLayout>
  );
}
