"""In which element types ops compute."""
