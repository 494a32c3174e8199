// The end of a tab that was opened only to sign in, while a page waits in another one; knows neither.
import { Text } from "@mantine/core";
import { useEffect } from "react";
import { EntranceLayout } from "./entrance-layout.tsx";

export default function SignedInPage() {
  // Browsers refuse this for tabs that a person has opened: then the text stays.
  useEffect(() => window.close(), []);
  return (
    <EntranceLayout title="You are signed in">
      <Text>The page in the other tab goes on by itself. You can close this one.</Text>
    </EntranceLayout>
  );
}
