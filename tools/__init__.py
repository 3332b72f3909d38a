"""What a release needs beside the package: metadata files and the check of a release."""
