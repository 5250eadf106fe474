"""Where bytes come from: compressed files, remote stores."""
